"""Tests of the new text that ask whether a GradScaler is there, where one always is: they asked for Apex."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.events.sides import Key, Side, changed, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import path
from amp_migrate.project import Function
from amp_migrate.training.origins.meant import meant

_TESTS = ast.If | ast.IfExp | ast.While | ast.Assert


def always_there(old: Side, new: Side) -> Iterator[tuple[Key, Difference]]:
    """Yield the tests of GradScalers that the new text brought and that come out one way alone."""
    if not new.program.training.objects.scalers:
        return
    for name in changed(old, new):
        had = {ast.unparse(n) for f in old.functions[name] for n in _asked(f)}
        for function in new.functions[name]:
            for node in _asked(function):
                text = ast.unparse(node)
                if text not in had and _is_there(new, function, node):
                    what = "is a GradScaler whether AMP is on or not, and is asked for here:"
                    yield differs(function, node, f"`{text}` {what}")


def _asked(function: Function) -> Iterator[ast.expr]:
    """Yield the variables and attributes that tests of a function ask for: ``if x``, ``x is None``."""
    for node in function.own_nodes:
        parts = [node.test] if isinstance(node, _TESTS) else []
        for part in parts:
            if isinstance(part, ast.BoolOp):
                parts += part.values
            elif isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
                parts.append(part.operand)
            elif (
                isinstance(part, ast.Compare)
                and len(part.ops) == 1
                and is_none(part.comparators[0])
            ):
                parts.append(part.left)
            elif path(part) is not None:
                yield part


def _is_there(side: Side, function: Function, node: ast.expr) -> bool:
    """Tell whether an expression holds a GradScaler in every run that is seen."""
    module = function.module
    if side.program.training.objects.scaler(module, node) is None:
        return False
    found = list(meant(side.project, module, node))
    return bool(found) and not any(value is None or is_none(value) for value in found)
