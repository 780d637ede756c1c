"""The constants that calls give for parameters, and how tests come out that count by one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.below import every, with_parts
from amp_migrate.flow.assumption import Assumption, Known, Value
from amp_migrate.flow.evaluate import evaluate, value_of
from amp_migrate.project import Function
from amp_migrate.protocol.calls.handed import handed_of
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.flags.whole import is_whole

_ONE = Known(1)


class Given:
    """Knows the bools, strings and None that a call gives, and the 1 that a function counts by."""

    def __init__(self, program: Program) -> None:
        self._project = program.project
        self._handed = handed_of(program)

    def constants(self, call: ast.Call, callee: Function) -> Iterator[tuple[str, Value]]:
        """Yield the parameters of a function that a call, or a default, gives a constant for, and those constants."""
        given = {**callee.parameters.defaults, **self._handed.given(call, callee)}
        for name, value in given.items():
            if isinstance(value, ast.Constant):
                known = Known(value.value)
                if isinstance(value.value, bool | str | None) or (
                    known == _ONE and _counts_by(callee, name)
                ):
                    yield name, known

    def outcome(self, function: Function, test: ast.expr, known: Assumption) -> bool | None:
        """Return how a test comes out that asks for remainders of whole numbers by 1; None for any other."""
        found: dict[ast.AST, ast.expr] = {
            part: ast.Constant(0)
            for part in _remainders(test)
            if value_of(part.right, known) == _ONE and is_whole(self._project, function, part.left)
        }
        return evaluate(with_parts(test, found), known) if found else None


def _counts_by(function: Function, name: str) -> bool:
    return any(
        isinstance(part.right, ast.Name) and part.right.id == name
        for node in function.own_nodes
        if isinstance(node, ast.BinOp)
        for part in _remainders(node)
    )


def _remainders(node: ast.expr) -> Iterator[ast.BinOp]:
    for part in every(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
            yield part
