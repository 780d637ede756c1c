"""The guards that a run passes on its way to an initialize, and does not pass on its way to an evaluation."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import calls_anything, same, tail, variables
from amp_migrate.flow.condition import Condition, names, negate
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.creation import Creation
from amp_migrate.project import Class, Function
from amp_migrate.project.imported import is_main
from amp_migrate.project.order import Loop, common, in_branch, levels, position
from amp_migrate.project.reach import made_with_object, reachable
from amp_migrate.project.relatives import family
from amp_migrate.training.bindings import named
from amp_migrate.values.calling.passing import LAUNCHERS


@dataclass(frozen=True, eq=False, slots=True)
class Guard:
    """A test of a function, of which one way out leads to an initialize: through a branch, or past one that returns."""

    function: Function
    test: ast.If
    positive: bool
    branch: list[ast.stmt]


@dataclass(frozen=True, eq=False, slots=True)
class _Way:
    """How a program comes to an initialize: where it begins, and the guards that it passes, outer first."""

    start: Function
    guards: tuple[Guard, ...]


class Begun:
    """Answers for the evaluations of a unit."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._project = unit.project
        self._known: dict[ast.AST, list[_Way]] = {}
        self._dominating: dict[Function, frozenset[Function]] = {}

    def guards(self, creation: Creation, function: Function, node: ast.AST) -> list[list[Guard]]:
        """Return, for each way to an initialize, the guards on it, outer first, that a node may do without."""
        below = self._below(creation, function)
        made = self._made(creation, function)
        return [
            [
                g
                for g in way.guards
                if below is None or g.function in below
                if made is None or g.function in made
                if not self._passes(g, function, node, frozenset())
            ]
            for way in self._with(creation, function)
        ]

    def _made(self, creation: Creation, function: Function) -> AbstractSet[Function] | None:
        """Return what makes the object of a method, where that comes to an initialize: what is asked before it, all its methods are behind."""
        origin, cls = creation.site.function, function.cls
        made = origin.cls.method("__init__") if origin.cls is not None else None
        if cls is None or made is None or not function.takes_receiver or function.is_class:
            return None
        begin = {made, *reachable(self._project, made)}
        alike = all(each.method("__init__") is made for each in (cls, *cls.subclasses()))
        return begin if alike and origin in begin and function not in begin else None

    def _below(self, creation: Creation, function: Function) -> AbstractSet[Function] | None:
        """Return what the last function runs through which all come to an initialize, and all to an evaluation, if any.

        What is asked above that is asked once for both.
        """
        shared = self._through(creation.site.function) & self._through(function)
        last = max(shared, key=lambda f: len(self._through(f)), default=None)
        return None if last is None else reachable(self._project, last)

    def _through(self, function: Function) -> frozenset[Function]:
        """Return the functions, itself among them, through which every run comes to a function."""
        if function not in self._dominating:
            every = closure([function], lambda f: (caller for caller, _ in self._sites(f)))
            known = dict.fromkeys(every, frozenset(every))
            changed = True
            while changed:
                changed = False
                for here in known:
                    above = [known[caller] for caller, _ in self._sites(here)]
                    through = frozenset.intersection(*above) if above else frozenset[Function]()
                    if (found := through | {here}) != known[here]:
                        known[here], changed = found, True
            self._dominating[function] = known[function]
        return self._dominating[function]

    def before(self, creation: Creation, function: Function, node: ast.AST) -> bool:
        """Tell whether every run of a function that turns AMP on comes past an initialize of its own first."""
        tree = function.module.tree
        if creation.site.function is not function or any(self.guards(creation, function, node)):
            return False
        pair = common(tree, creation.site.node, node)
        return pair is not None and position(tree, pair[0]) < position(tree, pair[1])

    def missed(self, creation: Creation, function: Function, node: ast.AST) -> list[list[Guard]]:
        """Return, for each way, the guards around the calls on it past which some run comes to a node."""
        origin = creation.site.function
        if made_with_object(self._project, origin) and function.cls in _family(origin):
            return []
        return [
            [
                g
                for g in way.guards
                if g.function is not origin and self._avoids(way, g, {origin}, function, node)
            ]
            for way in self._with(creation, function)
        ]

    def common(self, ways: list[list[Guard]]) -> list[Guard]:
        """Return the guards of the ways to an initialize, where all of them have the same."""
        return ways[0] if ways and all(self._are_alike(ways[0], way) for way in ways[1:]) else []

    def _are_alike(self, one: list[Guard], other: list[Guard]) -> bool:
        return len(one) == len(other) and all(
            a.positive is b.positive
            and same(a.test.test, b.test.test)
            and all(self._is_same(a, name, b.function) for name in variables(a.test.test))
            for a, b in zip(one, other, strict=True)
        )

    def condition(self, guard: Guard, function: Function) -> Condition | None:
        """Return what a guard asks, as a function can say it; None where it cannot, or it may come out otherwise there."""
        module = guard.function.module
        condition = self._unit.availability[module].reduce(guard.test.test)
        condition = condition if guard.positive else negate(condition)
        if condition.value is not None:
            return condition
        if not condition.text or calls_anything(guard.test.test) or not self._lasts(guard):
            return None
        return condition if self._sees(guard, condition.text, function) else None

    def _with(self, creation: Creation, function: Function) -> list[_Way]:
        """Return the ways to an initialize in the programs that may run a function; the only one in any case.

        A guard both ways out of which lead there is none.
        """
        ways = self._ways(creation.site.function, creation.top)
        if len(ways) == 1:
            return ways
        taken = {(g.test, g.positive) for way in ways for g in way.guards}
        return [
            _Way(w.start, tuple(g for g in w.guards if (g.test, not g.positive) not in taken))
            for w in ways
            if function in reachable(self._project, w.start)
        ]

    def _ways(self, function: Function, node: ast.AST) -> list[_Way]:
        """Return the ways that lead to a node from where a program begins, those with the same guards once."""
        if node in self._known:
            return self._known[node]
        self._known[node] = []  # calls in a circle are no other way
        own = tuple(_around(function, node))[::-1]
        found: dict[tuple[object, ...], _Way] = {}
        for caller, call in self._sites(function):
            for way in self._ways(caller, caller.module.tree.statement(call)):
                whole = _Way(way.start, (*way.guards, *own))
                found.setdefault((way.start, *((g.test, g.positive) for g in whole.guards)), whole)
        self._known[node] = list(found.values()) or [_Way(function, own)]
        return self._known[node]

    def _sites(self, function: Function) -> list[tuple[Function, ast.AST]]:
        """Return where a function is called, or handed to what starts it in processes or threads: ``mp.spawn(train)``.

        One that nothing is seen to call has been handed on before it runs.
        """
        found: list[tuple[Function, ast.AST]] = [
            (site.function, site.call) for site in self._project.callers(function)
        ]
        escapes = self._project.escapes(function)
        for user, node, _ in escapes:
            call = user.module.tree.user(node)
            if isinstance(call, ast.Call) and tail(call) in LAUNCHERS:
                found.append((user, call))
        return found or [(user, node) for user, node, _ in escapes if user is not function]

    def _avoids(
        self, way: _Way, guard: Guard, within: set[Function], function: Function, node: ast.AST
    ) -> bool:
        """Tell whether a run that begins as a way does may come to a node beside the branch of a guard, by no function of some."""
        seen = set(within)
        queue = [(function, node)]
        for here, at in queue:
            if here is guard.function:
                if not self._is_asked(guard, here, at):
                    return True
            elif here not in seen:
                seen.add(here)
                sites = self._sites(here)
                if not sites and here is way.start:
                    return True
                queue += sites
        return False

    def _is_asked(self, guard: Guard, function: Function, node: ast.AST) -> bool:
        """Tell whether a node stands in the branch of a guard, or in that of a test which asks the same."""
        tree = function.module.tree
        if in_branch(tree, node, guard.branch):
            return True
        return self._lasts(guard) and any(
            holds is guard.positive and same(up.test, guard.test.test)
            for up, holds in tree.sides(node)
        )

    def _passes(
        self, guard: Guard, function: Function, node: ast.AST, around: frozenset[Function]
    ) -> bool:
        """Tell whether every way to a node goes through the branch of a guard."""
        if function is guard.function:
            return in_branch(function.module.tree, node, guard.branch)
        if function in around:
            return True
        sites = self._sites(function)
        return bool(sites) and all(
            self._passes(guard, caller, call, around | {function}) for caller, call in sites
        )

    def _lasts(self, guard: Guard) -> bool:
        """Tell whether what a guard reads is the same all along: bound once, and no attribute of it is set."""
        module = guard.function.module
        for part in ast.walk(guard.test.test):
            if isinstance(part, ast.Attribute) and part.attr in self._unit.losses.objects.stored:
                return False
            if isinstance(part, ast.Name):
                bindings = module.scopes.bound(part)
                if len(bindings) > 1 or any(
                    isinstance(up, Loop | ast.comprehension)
                    for binding in bindings
                    for up in module.tree.ancestors(binding)
                    if not isinstance(binding, ast.alias | ast.arg)
                ):
                    return False
        return True

    def _sees(self, guard: Guard, text: str, function: Function) -> bool:
        """Tell whether the names that a guard reads are the same objects in a function."""
        return all(self._is_same(guard, name, function) for name in names(text))

    def _is_same(self, guard: Guard, name: str, function: Function) -> bool:
        module, origin = function.module, guard.function
        one, other = (f.module.scopes.find(f.scope, name) for f in (function, origin))
        if function is origin or one is other:
            return True
        ours = next(
            (n for n in ast.walk(guard.test.test) if isinstance(n, ast.Name) and n.id == name), None
        )
        theirs = named(function, name)
        if ours is None or theirs is None:
            return False
        return self._project.values.same(origin.module, ours, module, theirs)


def _family(function: Function) -> Collection[Class]:
    return family(function.cls) if function.cls is not None else ()


def _around(function: Function, node: ast.AST) -> Iterator[Guard]:
    """Yield the guards of a function that a run passes on its way to a node, inner first."""
    tree = function.module.tree
    for level in levels(tree, node):
        yield from _left_before(function, level)
        up = tree.holder(level)
        if isinstance(up, ast.If) and not is_main(up):
            positive = any(level is stmt for stmt in up.body)
            yield Guard(function, up, positive, up.body if positive else up.orelse)


def _left_before(function: Function, stmt: ast.stmt) -> Iterator[Guard]:
    """Yield the tests above a statement of its block that return where they come out true."""
    tree = function.module.tree
    block = tree.block(stmt)
    for k, before in enumerate(block[: position(tree, stmt)]):
        if isinstance(before, ast.If) and not before.orelse:
            if isinstance(before.body[-1], ast.Return):
                yield Guard(function, before, False, block[k + 1 :])
