"""The end of a region: what only logs, scales the loss behind that, or has nothing to do with it needs no casts."""

from __future__ import annotations

import ast
from dataclasses import replace

from amp_migrate.autocast.forwards import Forward, Forwards
from amp_migrate.autocast.slicing.region import Region
from amp_migrate.facts.paths import calls_anything, defs, uses

_SCALES = (ast.Mult, ast.Div)
_ENDS = (ast.Return, ast.Continue, ast.Break, ast.Pass)


def shortened(forwards: Forwards, region: Region) -> Region:
    """Return a region without the logging at its end, the multiplications of the loss that follow it, and other values."""
    statements = region.statements()
    last = len(statements)
    for i in range(len(statements) - 1, 0, -1):
        if _reports(forwards, region, statements[i]) or _is_apart(forwards, region, i):
            last = i
        elif not _scales(statements[i]):
            break
    return replace(region, last=statements[last - 1])


def _is_apart(forwards: Forwards, region: Region, i: int) -> bool:
    """Tell whether a statement computes something else, without casts, of nothing that the region computes before it."""
    stmt = region.statements()[i]
    if not isinstance(stmt, ast.Assign) or not forwards.indifferent.statement(
        region.function, stmt
    ):
        return False
    computed = {name for before in region.statements()[:i] for name in defs(before)}
    return not uses(stmt) & computed


def _scales(stmt: ast.stmt) -> bool:
    """Tell whether a statement only multiplies or divides: ``loss = loss / k``, under a test or not."""
    if isinstance(stmt, ast.If):
        return not calls_anything(stmt.test) and all(map(_scales, [*stmt.body, *stmt.orelse]))
    if isinstance(stmt, ast.AugAssign):
        return isinstance(stmt.op, _SCALES) and not calls_anything(stmt.value)
    return (
        isinstance(stmt, ast.Assign)
        and isinstance(stmt.value, ast.BinOp)
        and isinstance(stmt.value.op, _SCALES)
        and not calls_anything(stmt.value)
    )


def _reports(forwards: Forwards, region: Region, stmt: ast.stmt) -> bool:
    """Tell whether a statement only says what came of it: it keeps nothing, or a number that ``item()`` takes."""
    if isinstance(stmt, _ENDS):
        return True
    if isinstance(stmt, ast.If):
        return all(_reports(forwards, region, part) for part in [*stmt.body, *stmt.orelse])
    if isinstance(stmt, ast.Assign):
        value = stmt.value
        return (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr == "item"
            and not calls_anything(value.func.value)
        )
    if not isinstance(stmt, ast.Expr) or not isinstance(stmt.value, ast.Call):
        return False
    least = forwards.strength(region.module, stmt)
    return least is Forward.NONE or _is_printed(stmt.value)


def _is_printed(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "print"
