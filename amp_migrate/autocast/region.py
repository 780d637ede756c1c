"""Which statements autocast must cover for one backward: from the first forward to the last of the loss."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from amp_migrate.autocast.earlier import Earlier
from amp_migrate.autocast.finished import finished
from amp_migrate.autocast.forwards import Forward, Forwards
from amp_migrate.facts.contexts import runs_without_gradients
from amp_migrate.facts.paths import defs, path, uses, walk
from amp_migrate.project import CallSite, Function, Module, Project
from amp_migrate.unit.order import Loop, levels, position


@dataclass(frozen=True, eq=False, slots=True)
class Region:
    """Sibling statements `first` to `last` of one block that compute a loss."""

    module: Module
    function: Function
    first: ast.stmt
    last: ast.stmt

    def statements(self) -> list[ast.stmt]:
        """Return the statements of the region in order."""
        tree = self.module.tree
        return tree.block(self.first)[position(tree, self.first) : position(tree, self.last) + 1]


def _through(name: str, node: ast.expr, needed: set[str]) -> set[str]:
    """Return what is needed of an object that a caller passes: `trainer.loss` is its `self.loss`."""
    given = path(node)
    if given is None:
        return set()
    tails = {p.removeprefix(f"{name}.") for p in needed if p.startswith(f"{name}.")}
    return {f"{given}.{tail}" for tail in tails}


@dataclass(slots=True)
class Search:
    """What a search found: regions, and whether one of them runs a network.

    `apart` are statements behind another backward, a step or zero_grad that only compute with what is known.
    """

    regions: list[Region]
    network: bool
    inlines: list[tuple[CallSite, ast.expr]] = field(default_factory=list)
    elsewhere: list[Region] = field(default_factory=list)
    apart: list[list[ast.stmt]] = field(default_factory=list)


class RegionFinder:
    """Finds the regions of a backward.

    `barrier` tells that a statement steps or runs another backward, `setup` that it sets the training up.
    """

    def __init__(
        self,
        project: Project,
        forwards: Forwards,
        barrier: Callable[[Module, ast.stmt], bool],
        setup: Callable[[Function, ast.stmt], bool],
    ) -> None:
        self._project = project
        self._forwards = forwards
        self._barrier = barrier
        self._setup = setup
        self._earlier = Earlier(forwards, barrier)
        self._assigned: dict[Function, set[str]] = {}
        self._returning: set[Function] = set()

    def find(self, function: Function, at: ast.AST, loss: set[str]) -> Search:
        """Return the regions that compute the paths `loss`, read at the statement of `at`."""
        return self._find(function, at, set(loss), frozenset())

    def _find(
        self, function: Function, at: ast.AST, needed: set[str], seen: frozenset[Function]
    ) -> Search:
        found = self._local(function, at, needed)
        if function in seen or len(seen) > 6:
            return found
        if found.network:
            found.regions += self._handed_in(function, needed)
            return self._left_on_object(function, found, needed, seen | {function})
        outer = self._in_callers(function, needed, seen | {function})
        return Search(found.regions + outer.regions, outer.network, outer.inlines)

    def _handed_in(self, function: Function, needed: set[str]) -> list[Region]:
        """Return the forward passes of callers whose result is an argument of the function."""
        regions = []
        for site in self._project.callers(function):
            given = self._project.arguments(site, function)
            wanted = {p for name, node in given.items() if name in needed for p in uses(node)}
            caller = site.function
            tree = caller.module.tree
            for level in levels(tree, site.call) if wanted else ():
                before = tree.block(level)[: position(tree, level)]
                runs = self._earlier.above(caller, before, wanted)
                regions += [Region(caller.module, caller, run[0], run[-1]) for run in runs]
        return regions

    def _left_on_object(
        self, function: Function, found: Search, needed: set[str], seen: frozenset[Function]
    ) -> Search:
        """Add the calls of methods that ran a network before and left its result on `self`."""
        kept = {p for p in needed if p.startswith("self.")}
        for site in self._project.callers(function) if kept else ():
            if site.bound and site.function not in seen and site.function.cls is not None:
                here = self._local(site.function, site.call, set(kept))
                found.regions += [r for r in here.regions if self._calls_method(r)]
        found.elsewhere += [
            Region(method.module, method, stmts[0], stmts[-1])
            for method, stmts in self._earlier.methods(function, kept)
        ]
        return found

    def _calls_method(self, region: Region) -> bool:
        """Tell whether a region is no more than calls of methods that run a network."""
        return all(
            isinstance(stmt, ast.Expr)
            and (path(getattr(stmt.value, "func", stmt.value)) or "").startswith("self.")
            and self._forwards.strength(region.module, stmt) is Forward.NETWORK
            for stmt in region.statements()
        )

    def _local(self, function: Function, at: ast.AST, needed: set[str]) -> Search:
        tree = function.module.tree
        result = Search([], False)
        looped = False
        for level in levels(tree, at):
            before = tree.block(level)[: position(tree, level)]
            if looped or (result.network and any(self._setup(function, s) for s in before)):
                runs = self._earlier.above(function, before, needed)
                result.regions += [Region(function.module, function, r[0], r[-1]) for r in runs]
                continue
            self._level(function, before, needed, result)
            holder = tree.parents[level]
            if isinstance(holder, Loop):
                looped = result.network
                if isinstance(holder, ast.For | ast.AsyncFor) and defs(holder.target) & needed:
                    needed |= uses(holder.iter)
        computed = [stmt for region in result.regions for stmt in region.statements()]
        for run in finished(computed, result.apart) if result.network else ():
            result.regions.append(Region(function.module, function, run[0], run[-1]))
        return result

    def _level(
        self, function: Function, before: list[ast.stmt], needed: set[str], result: Search
    ) -> None:
        """Search a block backwards. Another backward or step ends a range, but not the search."""
        chosen: list[ast.stmt] = []
        for stmt in reversed(before):
            if self._barrier(function.module, stmt):
                self._add(function, chosen, result)
                chosen = []
                if self.defines(function, stmt) & needed:
                    self._behind_barrier(function, stmt, needed, result)
                continue
            written = self.defines(function, stmt)
            if written & needed:
                chosen.append(stmt)
                if isinstance(stmt, ast.Assign | ast.AnnAssign):
                    needed -= written
                needed |= uses(stmt)
        self._add(function, chosen, result)

    def _behind_barrier(
        self, function: Function, stmt: ast.stmt, needed: set[str], result: Search
    ) -> None:
        """Search a statement that runs another backward, and computes a part of the loss behind that."""
        if isinstance(stmt, ast.If | ast.With):
            for block in filter(None, (stmt.body, getattr(stmt, "orelse", []))):
                self._level(function, block, set(needed), result)
        else:
            for node in walk(stmt):
                callees = (
                    self._project.callees(node, function) if isinstance(node, ast.Call) else ()
                )
                for callee in filter(self._holds_barrier, callees):
                    self._returned(callee, result)
        needed |= uses(stmt)

    def _holds_barrier(self, function: Function) -> bool:
        return function.node is not None and any(
            self._barrier(function.module, stmt) for stmt in function.node.body
        )

    def _returned(self, function: Function, result: Search) -> None:
        """Add the forward passes of a helper that give what it returns; one that calls itself is searched once."""
        if function in self._returning:
            return
        self._returning.add(function)
        for node in walk(function.scope):
            if isinstance(node, ast.Return) and node.value is not None:
                result.regions += self._local(function, node, uses(node.value)).regions
        self._returning.discard(function)

    def _add(self, function: Function, chosen: list[ast.stmt], result: Search) -> None:
        chosen.reverse()
        while chosen and runs_without_gradients(chosen[0]):
            del chosen[0]
        region, network = self._range(function, chosen)
        if region is not None:
            result.regions.append(region)
            result.network = result.network or network
        elif chosen:
            result.apart.append(chosen)

    def _range(self, function: Function, chosen: list[ast.stmt]) -> tuple[Region | None, bool]:
        module = function.module
        strengths = [self._forwards.strength(module, stmt) for stmt in chosen]
        best = max(strengths, default=Forward.NONE)
        if best is Forward.NONE:
            return None, False
        wanted = best if best >= Forward.CRITERION else Forward.UNKNOWN
        running = [s for s, strength in zip(chosen, strengths, strict=True) if strength >= wanted]
        first = next((s for s in running if not runs_without_gradients(s)), running[0])
        return Region(module, function, first, chosen[-1]), best is Forward.NETWORK

    def defines(self, function: Function, stmt: ast.stmt) -> set[str]:
        """Return the paths that a statement writes, those that the methods it calls set on `self` too."""
        found = defs(stmt)
        for part in walk(stmt):
            if (
                isinstance(part, ast.Call)
                and path(part.func)
                and (path(part.func) or "").startswith("self.")
            ):
                for callee in self._project.callees(part, function):
                    found |= self._self_paths(callee)
        return found

    def _self_paths(self, function: Function) -> set[str]:
        known = self._assigned.get(function)
        if known is not None:
            return known
        self._assigned[function] = set()
        found: set[str] = set()
        if function.node is not None:
            for stmt in function.node.body:
                found |= {p for p in self.defines(function, stmt) if p.startswith("self.")}
        self._assigned[function] = found
        return found

    def _in_callers(
        self, function: Function, needed: set[str], seen: frozenset[Function]
    ) -> Search:
        result = Search([], False)
        sites = [
            (site, self._project.arguments(site, function))
            for site in self._project.callers(function)
        ]
        for site, given in [*sites, *self._project.completions(function)]:
            wanted, computed = self._wanted(site, given, needed)
            result.inlines += [(site, node) for node in computed]
            result.network = result.network or bool(computed)
            if not wanted:
                continue
            here = self._find(site.function, site.call, wanted, seen)
            result.regions += here.regions
            result.inlines += here.inlines
            result.network = result.network or here.network
        return result

    def _wanted(
        self, site: CallSite, given: Mapping[str, ast.expr], needed: set[str]
    ) -> tuple[set[str], list[ast.expr]]:
        """Return what the caller must have computed, and the arguments that compute a loss themselves."""
        wanted = {p for p in needed if p.startswith("self.")} if site.bound else set()
        computed = []
        for name, node in given.items():
            if name in needed:
                wanted |= uses(node)
                if self._forwards.strength(site.function.module, node) >= Forward.CRITERION:
                    computed.append(node)
            wanted |= _through(name, node, needed)
        return wanted, computed
