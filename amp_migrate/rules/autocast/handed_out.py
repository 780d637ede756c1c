"""Evaluations that a generator hands out: computed in a block that ends before the `yield`, as others run then."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.autocast.inlines import argument
from amp_migrate.facts.paths import YIELDS, calls_anything, walk
from amp_migrate.plan.model import Edit, Insert, ReplaceExpression, Wrap
from amp_migrate.rules.autocast.amp104_autocast import assignment, indent
from amp_migrate.rules.base import Context
from amp_migrate.training.region import Region

_BLOCKS = ("body", "orelse", "finalbody")


def handed_out(context: Context, region: Region, call: str) -> list[Edit] | None:
    """Return the edits that put a region under autocast without its `yield`s; None where it has none.

    What a `yield` gives is computed under the name of a statement before, unless it is for a loss already. Raises
    `Cannot` where it has to stay where it is.
    """
    if not any(map(_yields, region.statements())):
        return None
    return list(_edits(context, region, region.statements(), f"with {call}:"))


def _edits(
    context: Context, region: Region, statements: list[ast.stmt], header: str
) -> Iterator[Edit]:
    project, tree = context.unit.project, region.module.tree
    done = {inline.node for inline in context.inlines}
    before: list[ast.stmt] = []

    def block(computed: str = "") -> Iterator[Edit]:
        while before and not calls_anything(before[0]):
            before.pop(0)
        if before:
            yield Wrap(tree.span(before[0]), tree.span(before[-1]), header, computed)
        elif computed:
            yield Insert(tree.span(stmt), f"{header}\n    {indent(computed)}", after=False)
        before.clear()

    for stmt in statements:
        value = _given(stmt)
        if value in done:
            yield from block()
        elif value is not None and calls_anything(value):
            inline = argument(project, region.function, value, [], is_loss=False)
            yield from block(assignment(inline))
            yield ReplaceExpression(tree.span(value), inline.name)
        elif _yields(stmt):
            yield from block()
            for inner in _blocks(stmt):
                yield from _edits(context, region, inner, header)
        else:
            before.append(stmt)
    yield from block()


def _blocks(stmt: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a compound statement."""
    for holder in (stmt, *getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
        yield from (held for held in (getattr(holder, part, []) for part in _BLOCKS) if held)


def _given(stmt: ast.stmt) -> ast.expr | None:
    """Return what a statement hands out that is a `yield`, or stores what comes back of one."""
    value = stmt.value if isinstance(stmt, ast.Expr | ast.Assign) else None
    return value.value if isinstance(value, ast.Yield) else None


def _yields(stmt: ast.stmt) -> bool:
    return any(isinstance(node, YIELDS) for node in walk(stmt))
