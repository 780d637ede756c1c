"""The guards that a run passes on its way to an initialize, and does not pass on its way to an evaluation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from amp_migrate.facts.paths import calls_anything
from amp_migrate.flow.condition import Condition, names, negate
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.creation import Creation
from amp_migrate.project import Function
from amp_migrate.project.imported import is_main
from amp_migrate.project.order import Loop, in_branch, levels, position
from amp_migrate.training.bindings import named


@dataclass(frozen=True, eq=False, slots=True)
class Guard:
    """A test of a function, of which one way out leads to an initialize: through a branch, or past one that returns."""

    function: Function
    test: ast.If
    positive: bool
    branch: list[ast.stmt]


class Begun:
    """Answers for the evaluations of a unit."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._project = unit.project

    def guards(self, creation: Creation, function: Function, node: ast.AST) -> list[Guard]:
        """Return the guards around an initialize and the calls that lead to it, outer first, that a node may do without."""
        found = [
            guard
            for guard in self._leading(creation)
            if not self._passes(guard, function, node, frozenset())
        ]
        return found[::-1]

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

    def _leading(self, creation: Creation) -> Iterator[Guard]:
        """Yield the guards on the one way that leads to an initialize, inner first."""
        function, node = creation.site.function, creation.top
        seen: set[Function] = set()
        while function not in seen:
            seen.add(function)
            tree = function.module.tree
            for level in levels(tree, node):
                yield from _left_before(function, level)
                up = tree.holder(level)
                if isinstance(up, ast.If) and not is_main(up):
                    positive = any(level is stmt for stmt in up.body)
                    yield Guard(function, up, positive, up.body if positive else up.orelse)
            sites = self._project.callers(function)
            if len(sites) != 1:
                return
            function, node = (
                sites[0].function,
                sites[0].function.module.tree.statement(sites[0].call),
            )

    def _passes(
        self, guard: Guard, function: Function, node: ast.AST, around: frozenset[Function]
    ) -> bool:
        """Tell whether every way to a node goes through the branch of a guard."""
        if function is guard.function:
            return in_branch(function.module.tree, node, guard.branch)
        if function in around:
            return True
        sites = self._project.callers(function)
        return bool(sites) and all(
            self._passes(guard, site.function, site.call, around | {function}) for site in sites
        )

    def _lasts(self, guard: Guard) -> bool:
        """Tell whether what a guard reads is the same all along: bound once, and no attribute of it is set."""
        module = guard.function.module
        for part in ast.walk(guard.test.test):
            if isinstance(part, ast.Attribute) and part.attr in self._unit.losses.objects.stored:
                return False
            if isinstance(part, ast.Name):
                scope = module.scopes.owner(part)
                bindings = module.scopes.bindings(scope, part.id) if scope is not None else []
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
        if function is guard.function:
            return True
        return all(self._is_same(guard, name, function) for name in names(text))

    def _is_same(self, guard: Guard, name: str, function: Function) -> bool:
        module, origin = function.module, guard.function
        if module is origin.module:
            one = module.scopes.find(function.scope, name)
            if one is not None and one is module.scopes.find(origin.scope, name):
                return True
        ours = next(
            (n for n in ast.walk(guard.test.test) if isinstance(n, ast.Name) and n.id == name), None
        )
        theirs = named(function, name)
        if ours is None or theirs is None:
            return False
        return self._project.values.same(origin.module, ours, module, theirs)


def _left_before(function: Function, stmt: ast.stmt) -> Iterator[Guard]:
    """Yield the tests above a statement of its block that return where they come out true."""
    tree = function.module.tree
    block = tree.block(stmt)
    for k, before in enumerate(block[: position(tree, stmt)]):
        if isinstance(before, ast.If) and not before.orelse:
            if isinstance(before.body[-1], ast.Return):
                yield Guard(function, before, False, block[k + 1 :])
