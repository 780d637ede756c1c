"""The autocast block around a place, as the way that leads there entered it."""

from __future__ import annotations

import ast

from amp_migrate.protocol.casts.machine import Inside
from amp_migrate.protocol.certain.reading import Shown
from amp_migrate.protocol.run.ways import Turn
from amp_migrate.rules.native.remarks import Code
from amp_migrate.training.contexts import Context


def block(item: Shown) -> Code | None:
    """Return the `with` statement, or the decorated function, whose autocast a breach lies in."""
    entered: list[Turn] = []
    for turn in item.turns:
        if not isinstance(turn.before, Inside) or not isinstance(turn.after, Inside):
            continue
        more = len(turn.after.contexts) - len(turn.before.contexts)
        entered = [*entered, *[turn] * more] if more > 0 else entered[: len(entered) + more]
    for turn in reversed(entered):
        if isinstance(turn.after, Inside) and turn.after.contexts[-1] is Context.CASTS:
            return Code(turn.function, _statement(turn))
    return None


def _statement(turn: Turn) -> ast.AST:
    tree = turn.function.module.tree
    return tree.parents[turn.node] if isinstance(turn.node, ast.withitem) else turn.node
