"""Which statements autocast must cover for one backward: from the first forward to the last of the loss."""

from __future__ import annotations

import ast
from collections.abc import Callable

from amp_migrate.autocast.products import Products
from amp_migrate.autocast.slicing.aside import Aside, Stays
from amp_migrate.autocast.slicing.earlier import Earlier, behind_setup, computing
from amp_migrate.autocast.slicing.effects import effects_of
from amp_migrate.autocast.slicing.finished import finished
from amp_migrate.autocast.slicing.places import Needed, Place, is_kept, touches, without
from amp_migrate.autocast.slicing.ungraded import Ungraded
from amp_migrate.facts.paths import YIELDS, walk
from amp_migrate.project import CallSite, Function, Module, Project
from amp_migrate.project.order import SCOPES, Loop, levels, position
from amp_migrate.training.forwards.forwards import Forward, Forwards
from amp_migrate.training.forwards.later import comprehensions, generators_made, heads, runs_later
from amp_migrate.training.region import Region, Search, forwards_run

_GIVES = (ast.Return, *YIELDS)


class RegionFinder:
    """Finds the regions of a backward.

    `barrier` tells that a statement steps or runs another backward, `setup` that it sets the training up. With `stays`
    regions leave out what needs no casts, but for the statements that it tells.
    """

    def __init__(
        self,
        project: Project,
        forwards: Forwards,
        barrier: Callable[[Module, ast.stmt], bool],
        setup: Callable[[Function, ast.stmt], bool],
        stays: Stays | None = None,
    ) -> None:
        self._project = project
        self._forwards = forwards
        self._barrier = barrier
        self._setup = setup
        self._effects = effects_of(project)
        self._places = self._effects.places
        self._products = Products(project)
        self._earlier = Earlier(project, forwards, barrier, self._effects, self._products)
        self._aside = Aside(project, forwards, self._effects, stays) if stays is not None else None
        self._ungraded = Ungraded(project, forwards)
        self._entered: set[Function] = set()
        self._asked: set[tuple[ast.Call, frozenset[Place]]] = set()

    def find(self, function: Function, at: ast.AST, loss: ast.expr) -> Search:
        """Return the regions that compute a loss, read at the statement of `at`."""
        self._asked.clear()
        return self._find(function, at, self._effects.reads(function, loss), frozenset())

    def _find(
        self, function: Function, at: ast.AST, needed: Needed, seen: frozenset[Function]
    ) -> Search:
        found = self._local(function, at, needed)
        if found.network:
            self._handed_in(function, needed, found)
            return self._left_on_object(function, found, needed, seen | {function})
        outer = self._in_callers(function, needed, seen | {function})
        return Search(found.regions + outer.regions, outer.network, outer.inlines, outer.outputs)

    def _handed_in(self, function: Function, needed: Needed, found: Search) -> None:
        """Add the forward passes of callers whose result the function is given, or reads around it, and those that are arguments."""
        around = {up.scope for up in function.outward if up.node is not None}
        own = {p for p in needed if p.owner in around and not is_kept(function, p)}
        for site in self._project.callers(function):
            wanted = {q for p in own for q in self._effects.outward(site, function, p)}
            caller, tree = site.function, site.function.module.tree
            for level in levels(tree, site.call) if wanted else ():
                block = tree.block(level)[: position(tree, level)]
                before = behind_setup(caller, block, self._setup)
                for run in self._earlier.above(caller, before, wanted):
                    found.regions.append(Region(caller.module, caller, run[0], run[-1]))
            for node in (n for p in own for n, _ in self._effects.given(site, function, p)):
                if self._forwards.strength(caller.module, node) is Forward.NETWORK:
                    self._computed(caller, node, found)
                    found.outputs.append(node)

    def _left_on_object(
        self, function: Function, found: Search, needed: Needed, seen: frozenset[Function]
    ) -> Search:
        """Add the calls of methods that ran a network before and left its result on `self`."""
        kept = {p for p in needed if is_kept(function, p)}
        kept = {p for p in kept if not self._earlier.is_network(function, p)}
        for site in self._project.callers(function) if kept else ():
            if site.bound and site.function not in seen and site.function.cls is not None:
                wanted = {q for p in kept for q in self._effects.outward(site, function, p)}
                here = self._local(site.function, site.call, wanted)
                found.regions += [r for r in here.regions if self._earlier.calls_method(r)]
        found.elsewhere += [
            Region(method.module, method, stmts[0], stmts[-1])
            for method, stmts in self._earlier.methods(function, {p.steps for p in kept})
        ]
        return found

    def _local(self, function: Function, at: ast.AST, needed: Needed) -> Search:
        tree = function.module.tree
        result, looped = Search(), False
        for up in comprehensions(tree, at):
            self._head(function, up, needed, result)
        for level in levels(tree, at):
            block = tree.block(level)
            before = block[: position(tree, level)]
            if looped or (result.network and any(self._setup(function, s) for s in before)):
                runs = self._earlier.above(
                    function, behind_setup(function, before, self._setup), needed
                )
                result.regions += [Region(function.module, function, r[0], r[-1]) for r in runs]
                continue
            self._level(function, before, needed, result)
            holder = tree.holder(level)
            if isinstance(holder, Loop):
                if not result.network:
                    self._level(function, block[len(before) :], needed, result)
                looped = result.network
            self._head(function, holder, needed, result)
        computed = [stmt for region in result.regions for stmt in region.statements()]
        for run in finished(computed, result.apart) if result.network else ():
            result.regions.append(Region(function.module, function, run[0], run[-1]))
        for run in result.apart if result.network else ():
            result.regions += self._products.among(function, run)
        return result

    def _head(self, function: Function, holder: ast.AST, needed: Needed, result: Search) -> None:
        """Go on with what the head of a loop or a ``with`` takes the names from that are needed."""
        for target, value in heads(holder):
            if touches(self._places.targets(function.module, target), needed):
                needed |= self._effects.reads(function, value)
                self._made(function, value, result)

    def _made(self, function: Function, node: ast.AST, result: Search) -> None:
        """Search the generators and context managers that a node makes: they run behind it."""
        for part in walk(node):
            if not isinstance(part, ast.Call):
                continue
            for callee in runs_later(self._project, function.module, part):
                inner = Search()
                self._given(callee, inner)
                if inner.network or self._has_loss(inner):
                    result.take(inner)

    def _has_loss(self, found: Search) -> bool:
        computed = ((r.module, stmt) for r in found.regions for stmt in r.statements())
        return any(self._forwards.strength(*pair) >= Forward.CRITERION for pair in computed)

    def _level(
        self, function: Function, before: list[ast.stmt], needed: Needed, result: Search
    ) -> None:
        """Search a block backwards. Another backward or step ends a range, but not the search."""
        chosen: list[ast.stmt] = []
        for stmt in reversed(before):
            if isinstance(stmt, SCOPES):
                continue
            written = self._effects.writes(function, stmt)
            if self._ends(function, stmt) or self._is_apart(function, stmt, needed):
                self._add(function, chosen, result)
                chosen = []
                if touches(written, needed):
                    self._behind(function, stmt, needed, result)
            elif touches(written, needed):
                chosen.append(stmt)
                renamed = self._places.renamed(function.module, stmt, needed)
                needed -= needed - without(needed, self._places.renewed(function.module, stmt))
                needed |= self._effects.reads(function, stmt) | renamed
                self._made(function, stmt, result)
        self._add(function, chosen, result)

    def _ends(self, function: Function, stmt: ast.stmt) -> bool:
        """Tell whether no autocast may reach over a statement: it trains, sets the training up, or hands control back."""
        return (
            self._barrier(function.module, stmt)
            or self._setup(function, stmt)
            or any(isinstance(node, YIELDS) for node in walk(stmt))
            or any(map(self._holds_barrier, forwards_run(self._project, function, stmt)))
        )

    def _is_apart(self, function: Function, stmt: ast.stmt, needed: Needed) -> bool:
        """Tell whether a loop does more than to run networks and losses, so that autocast goes inside it."""
        if (
            self._aside is None
            or not isinstance(stmt, Loop)
            or not touches(self._effects.writes(function, stmt), needed)
        ):
            return False
        return self._aside.does_more(function, stmt.body)

    def _behind(self, function: Function, stmt: ast.stmt, needed: Needed, result: Search) -> None:
        """Search a statement that ends a range, and computes a part of the loss in itself."""
        lists = (value for _, value in ast.iter_fields(stmt) if isinstance(value, list))
        blocks = [block for block in lists if block and isinstance(block[0], ast.stmt)]
        for block in blocks:
            self._level(function, block, set(needed), result)
        for call in (n for n in walk(stmt) if isinstance(n, ast.Call) and not blocks):
            for callee in self._project.callees(call):
                if self._holds_barrier(callee):
                    self._given(callee, result)
            for callee, left in self._effects.leaving(call, needed):
                self._left(callee, left, result)
        needed |= self._effects.reads(function, stmt)

    def _left(self, function: Function, left: Needed, result: Search) -> None:
        """Add the forward passes of a function that give what it leaves on objects; one that calls itself is searched once."""
        if function in self._entered or function.node is None:
            return
        self._entered.add(function)
        self._level(function, function.node.body, set(left), result)
        self._entered.discard(function)

    def _holds_barrier(self, function: Function) -> bool:
        body = function.node.body if function.node is not None else []
        return any(self._barrier(function.module, stmt) for stmt in body)

    def _given(self, function: Function, result: Search) -> None:
        """Add the forward passes of a helper that give what it returns or yields; one that calls itself is searched once."""
        if function in self._entered:
            return
        self._entered.add(function)
        for node in (n for n in function.own_nodes if isinstance(n, _GIVES)):
            if node.value is not None:
                here = self._local(function, node, self._effects.reads(function, node.value))
                result.regions += here.regions
                result.network = result.network or here.network
                if not isinstance(node, ast.Return):
                    handed = node.value
                    for part in handed.elts if isinstance(handed, ast.Tuple) else [handed]:
                        self._computed(function, part, result)
                elif self._forwards.strength(function.module, node) >= Forward.CRITERION:
                    result.regions.append(Region(function.module, function, node, node))
        self._entered.discard(function)

    def _add(self, function: Function, chosen: list[ast.stmt], result: Search) -> None:
        chosen.reverse()
        while chosen and self._ungraded(function.module, chosen[0]):
            del chosen[0]
        region, network = self._range(function, chosen)
        if region is not None:
            result.regions += self._aside.parts(region, chosen) if self._aside else [region]
            before = chosen[: chosen.index(region.first)]
            above = [s for s in before if not self._ungraded(function.module, s)]
            result.regions += self._products.among(function, above) if network else []
            result.network = result.network or network
        elif chosen:
            result.apart.append(chosen)

    def _range(self, function: Function, chosen: list[ast.stmt]) -> tuple[Region | None, bool]:
        module = function.module
        strengths = [self._forwards.strength(module, stmt) for stmt in chosen]
        best = max(strengths, default=Forward.NONE)
        if best is Forward.NONE:
            return None, False
        wanted = Forward.CRITERION if best >= Forward.CRITERION else Forward.UNKNOWN
        running = [s for s, strength in zip(chosen, strengths, strict=True) if strength >= wanted]
        first = next((s for s in running if not self._ungraded(module, s)), running[0])
        return Region(module, function, first, chosen[-1]), best is Forward.NETWORK

    def _in_callers(self, function: Function, needed: Needed, seen: frozenset[Function]) -> Search:
        result = Search()
        for site in self._project.callers(function):
            wanted: Needed = set()
            for place in needed:
                wanted |= self._wanted(site, function, place, result)
            self._go_on(site, wanted, seen, result)
        for site, given in self._project.completions(function):
            named = {p.name for p in needed if p.owner is function.scope} & given.keys()
            wanted = {q for name in named for q in self._effects.reads(site.function, given[name])}
            for name in named:
                self._computed(site.function, given[name], result)
            self._go_on(site, wanted, seen, result)
        return result

    def _go_on(
        self, site: CallSite, wanted: Needed, seen: frozenset[Function], result: Search
    ) -> None:
        """Search the function of a call for what must be computed there, once for the same."""
        asked = site.call, frozenset(wanted)
        if wanted and asked not in self._asked:
            self._asked.add(asked)
            result.take(self._find(site.function, site.call, wanted, seen))

    def _wanted(self, site: CallSite, function: Function, place: Place, result: Search) -> Needed:
        """Return what the caller must have computed of a place; arguments that compute a loss are noted."""
        if place.owner is function.scope:
            for node, _ in self._effects.given(site, function, place):
                self._computed(site.function, node, result)
        return self._effects.outward(site, function, place)

    def _computed(self, function: Function, node: ast.expr, result: Search) -> None:
        for part in computing(self._project, self._forwards, function.module, node):
            result.network = True
            if generators := generators_made(self._project, part):
                for callee in generators:
                    self._given(callee, result)
            elif (function, part) not in result.inlines:
                result.inlines.append((function, part))
