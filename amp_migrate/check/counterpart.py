"""Where a statement of the new text would stand in the old one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from amp_migrate.check.events.sides import Side, key
from amp_migrate.flow.cfg.points import Kind as PointKind
from amp_migrate.project import Function, order

_HAPPENS = (PointKind.LOAD, PointKind.CALL, PointKind.STORE, PointKind.OPERATE)
_COMPOUND = (ast.If, ast.While, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Try, ast.Match)


class Counterpart(NamedTuple):
    """A node of a function of the old text; `behind` tells that it runs behind what it stands for, not in front of it."""

    function: Function
    node: ast.AST
    behind: bool


def counterpart(old: Side, function: Function, node: ast.AST) -> Counterpart | None:
    """Return what of the old text runs first behind a node of a function of the new one, or last in front of it.

    What stands under a new test stands where that does.
    """
    tree, olds = function.module.tree, old.functions.get(key(function), ())
    statement = tree.statement(node)
    block = tree.block(statement)
    place = block.index(statement)
    behind = block[place + 1 :]
    simple = takewhile(lambda s: not isinstance(s, _COMPOUND), reversed(block[:place]))
    before = list(simple)
    for others, first in ((behind, True), (before, False)):
        for other in others:
            for same in olds:
                found = _like(same, function, other)
                points = old.program.graph(same).within(found) if found is not None else ()
                if happening := [p for p in points if p.kind in _HAPPENS]:
                    return Counterpart(same, happening[0 if first else -1].node, first)
    up = tree.parent(statement)
    if isinstance(up, ast.If) and not any(
        heads(up) == heads(s) for f in olds for s in statements(f)
    ):
        return counterpart(old, function, up)
    return None


def _like(old: Function, new: Function, statement: ast.stmt) -> ast.stmt | None:
    """Return the statement of a function that reads the same, of several the one in the same place among them."""
    head = heads(statement)
    had = [s for s in statements(old) if heads(s) == head]
    has = [s for s in statements(new) if heads(s) == head]
    if not had:
        return None
    found = had[has.index(statement)] if len(had) == len(has) else had[0]
    inner = isinstance(statement, ast.If) and new.module.tree.is_elif(statement)
    return found if inner else _chain(old, found)


def _chain(function: Function, statement: ast.stmt) -> ast.stmt:
    """Return the statement that begins a chain of tests, for an ``elif`` of it, else the statement itself."""
    tree = function.module.tree
    while isinstance(statement, ast.If) and tree.is_elif(statement):
        up = tree.parent(statement)
        assert isinstance(up, ast.If)
        statement = up
    return statement


def statements(function: Function) -> Sequence[ast.stmt]:
    """Return the statements of a function in the order of the text."""
    found = [node for node in function.own_nodes if isinstance(node, ast.stmt)]
    return sorted(found, key=order.key)


def heads(statement: ast.stmt) -> str:
    """Return how a statement begins, whatever its blocks hold."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return f"def {statement.name}"
    if isinstance(statement, ast.Return):
        return "return"  # the new one may give the GradScaler back, too
    if isinstance(statement, ast.With | ast.AsyncWith):
        return f"with {', '.join(ast.unparse(item) for item in statement.items)}"
    if not isinstance(statement, _COMPOUND):
        return ast.unparse(statement)
    return f"{type(statement).__name__} {' '.join(map(ast.unparse, _asked(statement)))}"


def _asked(statement: ast.stmt) -> Iterator[ast.expr]:
    return (part for part in ast.iter_child_nodes(statement) if isinstance(part, ast.expr))
