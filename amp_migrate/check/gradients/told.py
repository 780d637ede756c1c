"""What in a program tells of something that some of its functions work out: variables, results, and the tests of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import cached_property

from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import defs, uses, walk
from amp_migrate.flow.cfg.subject import DECIDES
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program

_BINDS = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr | ast.Expr
_RESULT = ""
_Item = tuple[Function, str]
"""A variable of a function by its path, or what the function returns."""


class Told:
    """Follows what some nodes give, and calls of the functions that hold them, to all that is worked out of it."""

    def __init__(
        self, program: Program, sources: AbstractSet[ast.AST], holding: AbstractSet[Function]
    ) -> None:
        self._program = program
        self._sources = sources
        self._holding = holding

    def tells(self, function: Function, node: ast.AST) -> bool:
        """Tell whether an expression of a function tells of it."""
        callees = self._program.project.callees
        calls = [part for part in walk(node) if isinstance(part, ast.Call)]
        read = [(function, name) for name in uses(node)]
        read += [(callee, _RESULT) for call in calls for callee in callees(call)]
        return self._is_source(node) or not self._items.isdisjoint(read)

    def _is_source(self, node: ast.AST) -> bool:
        return any(
            part in self._sources
            or (isinstance(part, ast.Call) and self._program.enters(part, self._holding))
            for part in walk(node)
        )

    @cached_property
    def _items(self) -> frozenset[_Item]:
        """All that tells of it."""
        starts = [
            item
            for function in self._holding
            for part, items in self._worked_out(function)
            if self._is_source(part)
            for item in items
        ]
        return frozenset(closure(starts, self._onward))

    def _onward(self, item: _Item) -> Iterator[_Item]:
        """Yield what tells of something where an item does."""
        function, name = item
        if name == _RESULT:
            for site in self._program.project.callers(function):
                for part, items in self._worked_out(site.function):
                    if any(node is site.call for node in walk(part)):
                        yield from items
            return
        for part, items in self._worked_out(function):
            if name in uses(part):
                yield from items
        yield from ((inner, name) for inner in self._sharing(function, name))

    def _worked_out(self, function: Function) -> list[tuple[ast.AST, list[_Item]]]:
        """Return the expressions of a function, each with what is bound to it, gets it, or is bound where it decides."""
        if function not in self._known:
            self._known[function] = [
                (part, [(function, name) for name in names])
                for node in function.own_nodes
                for part, names in _bound(node)
            ]
            for call in function.calls:
                self._known[function] += self._handed(call)
        return self._known[function]

    @cached_property
    def _known(self) -> dict[Function, list[tuple[ast.AST, list[_Item]]]]:
        return {}

    def _handed(self, call: ast.Call) -> Iterator[tuple[ast.AST, list[_Item]]]:
        for callee in self._program.project.callees(call):
            for parameter, value in self._program.project.given(call, callee).items():
                yield value, [(callee, parameter)]

    def _sharing(self, function: Function, name: str) -> Iterator[Function]:
        """Yield the other functions that mean the same by a path: those inside, and for an attribute the methods of the object."""
        base, _, attribute = name.partition(".")
        for other in function.module.functions.values():
            if other is not function and function in other.outward:
                if other.module.scopes.find(other.scope, base) is function.scope:
                    yield other
        method = function.method
        if attribute and method is not None and method.cls is not None:
            for owner in (*method.cls.mro(), *method.cls.subclasses()):
                yield from (m for m in owner.methods.values() if m is not function)


def _bound(node: ast.AST) -> Iterator[tuple[ast.AST, set[str]]]:
    """Yield what a node evaluates, with what is bound to it; a test with what is bound where it decides."""
    if isinstance(node, ast.Return) and node.value is not None:
        yield node.value, {_RESULT}
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.iter, defs(node.target)
    elif isinstance(node, DECIDES):
        tests = [node.subject] if isinstance(node, ast.Match) else [node.test]
        if isinstance(node, ast.Match):
            tests += [case.guard for case in node.cases if case.guard is not None]
        yield from ((test, defs(node)) for test in tests)
    elif isinstance(node, _BINDS) and node.value is not None:
        yield node.value, defs(node)
