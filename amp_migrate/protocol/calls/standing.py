"""The tests that names stand for: ``ready = (i + 1) % k == 0``, or a call that gives such a test for a parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from amp_migrate.facts.below import names_in
from amp_migrate.facts.closure import closure
from amp_migrate.project import Function
from amp_migrate.project.once import once
from amp_migrate.protocol.calls.answers import Answers
from amp_migrate.protocol.calls.handed import handed_of
from amp_migrate.protocol.code.program import Program

Stands = tuple[str, ast.expr]
"""A name and the test that it stands for, spelt with what functions answer."""


class Standing:
    """Reads them off the functions that a machine goes through."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._handed = handed_of(program)
        self.answers = Answers(program.project)

    def given(self, call: ast.Call, callee: Function) -> Iterator[Stands]:
        """Yield the parameters that a call gives a test or a variable for, which their function never binds anew."""
        for name, given in self._handed.given(call, callee).items():
            test = self.answers.spelt(given)
            if is_test(test) or isinstance(test, ast.Name):
                if len(callee.module.scopes.bindings(callee.scope, name)) == 1:
                    yield name, test

    def held(self, function: Function) -> Iterator[Stands]:
        """Yield the variables of a function that hold a test."""
        for node in function.own_nodes:
            if isinstance(node, ast.Assign):
                test = self.answers.spelt(node.value)
                if is_test(test):
                    yield from ((t.id, test) for t in node.targets if isinstance(t, ast.Name))

    @cached_property
    def all(self) -> tuple[Stands, ...]:
        """Those of the functions of a training."""
        found: list[Stands] = []
        for function in self._program.relevant:
            found += self.held(function)
            for site in self._program.project.callers(function):
                found += self.given(site.call, function)
        return tuple(found)

    def behind(self, names: Iterable[str]) -> list[Stands]:
        """Return those of some names, and of what their tests read in their turn."""
        by_name: dict[str, list[ast.expr]] = {}
        for name, test in self.all:
            by_name.setdefault(name, []).append(test)

        def read(name: str) -> set[str]:
            return {n for test in by_name.get(name, ()) for n in names_in(test)}

        return [(n, test) for n in closure(names, read) for test in by_name.get(n, ())]


def is_test(node: ast.expr) -> bool:
    """Tell whether an expression is a comparison, a remainder, or made of tests, so that a name may stand for it."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mod)
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return negated or isinstance(node, ast.Compare | ast.BoolOp)


standing_of = once(Standing)
