"""Where statements stand relative to one another inside a function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from amp_migrate.facts.tree import Tree

Loop = ast.For | ast.While | ast.AsyncFor
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def levels(tree: Tree, node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statement of `node` and the statements around it, inner first, up to its function or module."""
    start = stmt = tree.statement(node)
    while isinstance(stmt, ast.stmt) and (stmt is start or not isinstance(stmt, SCOPES)):
        yield stmt
        up = tree.holder(stmt)
        while isinstance(up, ast.ExceptHandler | ast.match_case):
            up = tree.parents[up]
        stmt = up  # type: ignore[assignment]


def beside(tree: Tree, node: ast.AST, other: ast.stmt) -> ast.stmt | None:
    """Return the statement that holds `node` in the block of another one, if any does."""
    block = tree.block(other)
    return next((level for level in levels(tree, node) if tree.block(level) is block), None)


def common(tree: Tree, a: ast.AST, b: ast.AST) -> tuple[ast.stmt, ast.stmt] | None:
    """Return the statements of the innermost common block that hold `a` and `b` (maybe the same one)."""
    blocks = {id(tree.block(s)): s for s in levels(tree, a)}
    for theirs in levels(tree, b):
        mine = blocks.get(id(tree.block(theirs)))
        if mine is not None:
            return mine, theirs
    return None


def tests_between(tree: Tree, stmt: ast.stmt, anchor: ast.stmt) -> Iterator[ast.If]:
    """Yield the `if`s that a statement leaves when it moves to an anchor, inner first."""
    pair = common(tree, stmt, anchor)
    for level in levels(tree, stmt):
        if isinstance(level, ast.If) and level is not stmt:
            yield level
        if pair is not None and level is pair[0]:
            return


def dominates(tree: Tree, before: ast.stmt, use: ast.AST) -> bool:
    """Tell whether `before`, or a statement in it, always runs before `use` when `use` runs."""
    there = beside(tree, use, before)
    return there is not None and position(tree, before) < position(tree, there)


def exclusive(tree: Tree, a: ast.AST, b: ast.AST) -> bool:
    """Tell whether two nodes stand in different branches of one `if`, so that never both run."""
    theirs = {id(level): level for level in levels(tree, b)}
    for level in levels(tree, a):
        if isinstance(level, ast.If) and id(level) in theirs:
            return any(
                in_branch(tree, a, one) and in_branch(tree, b, other)
                for one, other in ((level.body, level.orelse), (level.orelse, level.body))
            )
    return False


def position(tree: Tree, stmt: ast.stmt) -> int:
    """Return the index of a statement in its block."""
    return next(i for i, s in enumerate(tree.block(stmt)) if s is stmt)


def loop_of(tree: Tree, node: ast.AST) -> ast.stmt | None:
    """Return the innermost loop of the function of `node` in whose rounds it runs: what stands in its ``else`` runs once."""
    below: ast.AST = node
    for level in levels(tree, node):
        if isinstance(level, Loop) and level is not node:
            if not any(stmt is below for stmt in level.orelse):
                return level
        below = level
    return None


def inside(tree: Tree, node: ast.AST, outer: ast.AST) -> bool:
    """Tell whether `node` is `outer` or lies in it."""
    return node is outer or any(up is outer for up in tree.ancestors(node))


def in_branch(tree: Tree, node: ast.AST, branch: list[ast.stmt]) -> bool:
    """Tell whether `node` lies in one of the statements of a block."""
    return any(inside(tree, node, stmt) for stmt in branch)


def comes_to(block: list[ast.stmt], wanted: Callable[[ast.stmt], bool]) -> bool:
    """Tell whether a block comes to a statement of some kind, whichever way its tests go."""
    return any(
        all(comes_to(arm, wanted) for arm in (stmt.body, stmt.orelse))
        if isinstance(stmt, ast.If)
        else wanted(stmt)
        for stmt in block
    )


def key(node: ast.AST) -> tuple[int, int]:
    """Return a sort key by place in the source."""
    return (node.lineno, node.col_offset)  # type: ignore[attr-defined]
