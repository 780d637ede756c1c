"""All autocast regions of a unit: those of its backward passes, merged where they overlap."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from amp_migrate.apex.sites import Kind
from amp_migrate.autocast.adopted import adopted
from amp_migrate.autocast.inlines import Inline, argument, of_backward
from amp_migrate.autocast.slicing.deferred import through
from amp_migrate.autocast.slicing.finder import RegionFinder
from amp_migrate.autocast.slicing.tail import lengthened, parted, shortened
from amp_migrate.autocast.slicing.threads import forwards_in, started
from amp_migrate.facts.paths import walk
from amp_migrate.facts.tree import Tree
from amp_migrate.placement.backwards.penalty import of_weights
from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.zeroing import is_zero_grad
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Function, Module
from amp_migrate.project.order import inside, position
from amp_migrate.project.reach import reachable, upwards
from amp_migrate.training.contexts import enters_autocast, in_autocast
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.region import Region, Search, run_in
from amp_migrate.training.steps import Backward


def training(
    unit: Unit, blocks: Iterable[ScaleLoss]
) -> tuple[list[Region], list[Inline], dict[ScaleLoss, str]]:
    """Return the regions of every backward, the losses that get a statement, and their new names."""
    setup = _Setup(unit)
    stays = is_zero_grad if unit.plain else None
    finder = RegionFinder(unit.project, unit.forwards, unit.trains, setup.holds, stays)
    gathering = _Gathering(unit, finder, {block.node: block for block in blocks})
    for backward in unit.live_backwards():
        gathering.trained(backward)
    if unit.plain:
        gathering.in_threads()
    gathering.refuse_unseen()
    gathering.regions += _copying(unit)
    for probe in [*unit.probes, *unit.beside]:
        if probe.function not in unit.copying and probe.node not in unit.gone:
            gathering.probed(probe)
    regions = gathering.whole()
    if not unit.plain:
        found = [parted(unit.project, unit.forwards, region) for region in regions]
        unit.between = [taken for _, between in found for taken in between]
        short = [shortened(unit.forwards, part) for parts, _ in found for part in parts]
        regions = merged([lengthened(unit.project, part, unit.trains) for part in short])
    regions = merged([through(unit, region) for region in regions])
    for region in regions:
        setup.refuse(region)
    kept = [part for r in regions for part in _beside_own(unit, r)]
    return kept, gathering.inlines, gathering.names


@dataclass
class _Gathering:
    """What the losses of a unit are computed by.

    `unseen` are the backward passes whose loss no network is seen to compute, `covered` the functions in which one does for
    another, and `elsewhere` the regions in other functions, which others may hold already.
    """

    unit: Unit
    finder: RegionFinder
    blocks: Mapping[ast.AST, ScaleLoss]
    regions: list[Region] = field(default_factory=list)
    inlines: list[Inline] = field(default_factory=list)
    names: dict[ScaleLoss, str] = field(default_factory=dict)
    unseen: list[Backward] = field(default_factory=list)
    covered: set[Function] = field(default_factory=set)
    elsewhere: list[Region] = field(default_factory=list)

    def trained(self, backward: Backward) -> None:
        """Take the regions of a backward that trains, and the loss where it has no statement of its own."""
        unit, function, loss = self.unit, backward.function, backward.loss
        if unit.home.runners.computes(function):
            unit.outside.append(backward)
        if adopted(unit.project, function, loss, backward.node) is not None:
            self.covered.add(function)
            return
        search = self.finder.find(function, backward.node, loss)
        strength = unit.forwards.strength(backward.module, loss)
        runs = _runs_network(unit, search)
        if strength >= Forward.CRITERION:
            self._name(backward)
        elif not runs and backward not in unit.outside and not of_weights(unit, backward):
            self.unseen.append(backward)
        self.regions += search.regions
        self.elsewhere += search.elsewhere
        if runs or strength is Forward.NETWORK:
            self.covered.add(function)
        self._given(search)

    def _given(self, search: Search) -> None:
        """Give a statement to each loss and output that is computed as the argument of a call."""
        project, inlines = self.unit.project, self.inlines
        for where, node in search.inlines:
            if all(node is not inline.node for inline in inlines):
                is_loss = node not in search.outputs
                inlines.append(argument(project, where, node, inlines, is_loss=is_loss))

    def _name(self, backward: Backward) -> None:
        inline = of_backward(self.unit, backward)
        self.inlines.append(inline)
        block = self.blocks.get(backward.node) if isinstance(backward.node, ast.With) else None
        if block is not None:
            self.names[block] = inline.name

    def in_threads(self) -> None:
        """Take the forward passes that threads run."""
        for starter, region in _in_threads(self.unit):
            self.regions.append(region)
            self.covered.update(upwards(self.unit.project, starter))

    def refuse_unseen(self) -> None:
        """Raise `Cannot` where it is not known what computes a loss."""
        for backward in self.unseen:
            if backward.function not in self.covered:
                raise _unseen(backward)

    def probed(self, probe: Backward) -> None:
        """Take the regions of a backward that trains nothing of the unit."""
        search = self.finder.find(probe.function, probe.node, probe.loss)
        if self.unit.forwards.strength(probe.module, probe.loss) >= Forward.CRITERION:
            self.inlines.append(of_backward(self.unit, probe))
        self.regions += search.regions
        self._given(search)

    def whole(self) -> list[Region]:
        """Return all regions, merged, without those that run under another."""
        already = run_in(self.unit.project, self.regions)
        apart = (region for region in self.elsewhere if region.function not in already)
        return merged([*self.regions, *apart])


def _beside_own(unit: Unit, region: Region) -> list[Region]:
    """Return what is left of a region without the autocasts of the source at its ends; nothing of one that stands in one."""
    if has_its_own(unit, region):
        return []
    module, left = region.module, region.statements()
    while left and _is_own(unit, module, left[0]):
        left = left[1:]
    while left and _is_own(unit, module, left[-1]):
        left = left[:-1]
    blocks = _others(unit, module, left[0]) if len(left) == 1 else None
    if blocks is not None:
        return [Region(module, region.function, block[0], block[-1]) for block in blocks]
    return [Region(module, region.function, left[0], left[-1])] if left else []


def _others(unit: Unit, module: Module, stmt: ast.stmt) -> list[list[ast.stmt]] | None:
    """Return the other branches of a test of which some are no more than autocasts of the source; None where none is."""
    if not isinstance(stmt, ast.If):
        return None
    blocks, rest = [stmt.body], stmt.orelse
    while rest and isinstance(rest[0], ast.If) and module.tree.is_elif(rest[0]):
        blocks, rest = [*blocks, rest[0].body], rest[0].orelse
    blocks += [rest] if rest else []
    left = [block for block in blocks if not all(_is_own(unit, module, s) for s in block)]
    return left if len(left) < len(blocks) else None


def _is_own(unit: Unit, module: Module, stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.With) and enters_autocast(unit.project, module, stmt)


def has_its_own(unit: Unit, region: Region) -> bool:
    """Tell whether the source has an autocast around a region, or the region is no more than one."""
    first, module = region.first, region.module
    own = first is region.last and _is_own(unit, module, first)
    return own or in_autocast(unit.project, module, first)


def _copying(unit: Unit) -> list[Region]:
    """Return the calls, where the unit trains, of functions that train nothing but copies of their own."""
    trains = unit.training
    return [
        Region(site.function.module, site.function, stmt, stmt)
        for function in unit.copying
        for site in unit.project.callers(function)
        if site.function in trains
        for stmt in [site.function.module.tree.statement(site.call)]
    ]


def _in_threads(unit: Unit) -> list[tuple[Function, Region]]:
    """Return the forward passes of functions that threads run, and train nothing themselves, with what starts those."""
    trains = unit.training
    found = []
    for module in unit.near:
        for call, function in started(unit.project, module):
            region = forwards_in(unit.forwards, function)
            if region is not None and not trains & set(reachable(unit.project, function)):
                found.append((unit.project.function_of(module, call), region))
    return found


def _runs_network(unit: Unit, search: Search) -> bool:
    """Tell whether a search came upon a network, or at least upon calls that may be one."""
    return search.network or any(
        unit.forwards.may_run(r.module, stmt) for r in search.regions for stmt in r.statements()
    )


def merged(regions: list[Region]) -> list[Region]:
    """Join regions of one block that overlap or touch, and drop those inside another."""
    result: list[Region] = []
    for region in regions:
        tree = region.module.tree
        for i, other in enumerate(result):
            if other.module is region.module and tree.block(other.first) is tree.block(
                region.first
            ):
                joined = _join(tree, other, region)
                if joined is not None:
                    result[i] = joined
                    break
        else:
            result.append(region)
    return [r for r in result if not any(r is not o and within(r, o) for o in result)]


def _join(tree: Tree, a: Region, b: Region) -> Region | None:
    starts = sorted((a, b), key=lambda r: position(tree, r.first))
    gap = position(tree, starts[1].first) - position(tree, starts[0].last)
    if gap > 1 or (gap == 1 and any(_enters(stmt) for r in starts for stmt in r.statements())):
        return None
    last = max((a.last, b.last), key=lambda s: position(tree, s))
    return Region(a.module, a.function, starts[0].first, last)


def _enters(stmt: ast.stmt) -> bool:
    """Tell whether a statement enters a context, in which weights may be cast without gradients."""
    return any(isinstance(node, ast.With) for node in walk(stmt))


def within(inner: Region, outer: Region) -> bool:
    """Tell whether a region begins inside another one."""
    return inner.module is outer.module and any(
        inside(inner.module.tree, inner.first, stmt) for stmt in outer.statements()
    )


class _Setup:
    """Knows the code that sets the training up: it initializes, or calls what does."""

    def __init__(self, unit: Unit) -> None:
        self._project = unit.project
        self._inits = {site.node for site in unit.of(Kind.INITIALIZE)}
        self._functions = unit.initializing

    def holds(self, function: Function, stmt: ast.stmt) -> bool:
        """Tell whether a statement of a function sets the training up."""
        return any(
            node in self._inits
            or (
                isinstance(node, ast.Call)
                and function not in self._functions
                and bool(self._functions & set(self._project.callees(node)))
            )
            for node in walk(stmt)
        )

    def refuse(self, region: Region) -> None:
        """Raise `Cannot` for a region that sets the training up: it is no forward pass, the search went astray."""
        if any(self.holds(region.function, stmt) for stmt in region.statements()):
            raise Cannot(
                "AMP904",
                region.module,
                region.first,
                "what computes the loss calls amp.initialize as well, so autocast cannot be put around it",
                "put the forward pass and the loss under `with torch.cuda.amp.autocast():`, then run again",
            )


def _unseen(backward: Backward) -> Cannot:
    return Cannot(
        "AMP904",
        *backward.at,
        f"no forward pass of a network is recognised in what computes `{ast.unparse(backward.loss)}`, so it is not known "
        "where autocast belongs",
        "put the forward pass and the loss under `with torch.cuda.amp.autocast():`, then run again",
    )
