"""Tests for what Apex leaves on an optimizer, ``hasattr(optimizer, "_amp_stash")``, that decide nothing.

Both ways are the same code, or one only complains that Apex was not there: native AMP leaves nothing to miss.
A test of whether `amp` has one of its functions, ``"state_dict" in amp.__dict__``, asks for no more than Apex.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from amp_migrate.apex.sites import AMP_CALLS, MARKS
from amp_migrate.facts.paths import acts, among_names, same
from amp_migrate.facts.tree import Tree
from amp_migrate.plain.write import Piece, filling
from amp_migrate.project import Module, Project
from amp_migrate.source.span import Span

_LOOKING = frozenset({"bool", "getattr", "hasattr", "vars"})
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, slots=True)
class Idle:
    """A test that decides nothing, and the text without it; what stands in for a statement is one to drop."""

    node: ast.If | ast.Assert | ast.expr
    piece: Piece


def mentions_mark(tree: Tree) -> bool:
    """Tell whether a file may speak of what Apex leaves on optimizers."""
    return any(mark in tree.text for mark in MARKS)


def idle(tree: Tree) -> Iterator[Idle]:
    """Yield the tests for marks of Apex after which either way does the same."""
    for node in tree.nodes(ast.If):
        piece = _without(tree, node) if _asks(node.test) else None
        if piece is not None:
            yield Idle(node, piece)
    for claim in tree.nodes(ast.Assert):
        if _asks(claim.test) and _is_there(claim.test) and not tree.in_try(claim):
            span = tree.span(claim)
            yield Idle(claim, filling(span))
    for choice in tree.nodes(ast.IfExp):
        if _asks(choice.test) and _same([choice.body], [choice.orelse]):
            span = tree.span(choice)
            text = tree.segment(choice.body)
            if span.line == span.end_line:
                yield Idle(choice, Piece(span, f"({text})" if _binds_weaker(choice.body) else text))


def offered(project: Project, module: Module) -> Iterator[Idle]:
    """Yield the tests of whether `amp` has a function that it does have, which ask whether there is Apex."""
    tree = module.tree
    for test in tree.nodes(ast.Compare):
        holder, name = among_names(test)
        if holder is None or name not in AMP_CALLS or project.apex(module, holder) != "apex.amp":
            continue
        span = tree.span(test)
        if span.line == span.end_line:
            there = "is" if isinstance(test.ops[0], ast.NotIn) else "is not"
            text = f"{tree.segment(holder)} {there} None"
            bare = isinstance(tree.parent(test), ast.If | ast.IfExp | ast.BoolOp | ast.Assert)
            yield Idle(test, Piece(span, text if bare else f"({text})"))


def _asks(test: ast.expr) -> bool:
    """Tell whether a test looks for a mark, and does nothing else."""
    looks = all(
        isinstance(node.func, ast.Name) and node.func.id in _LOOKING
        for node in ast.walk(test)
        if isinstance(node, ast.Call)
    )
    return (
        looks
        and not acts(test)
        and any(isinstance(n, ast.Constant) and n.value in MARKS for n in ast.walk(test))
    )


def _without(tree: Tree, node: ast.If) -> Piece | None:
    """Return what stands for an `if` that decides nothing: a statement to drop, and its `else` if it has one."""
    span = tree.span(node)
    line = tree.lines[span.line - 1]
    if line[: span.column].strip() or tree.is_elif(node):
        return None
    if not node.orelse:
        if all(isinstance(stmt, ast.Pass) for stmt in node.body) or _complains(tree, node):
            return filling(span)
        block = tree.block(node)
        after = block[block.index(node) + 1 :][: len(node.body)]
        if not isinstance(node.body[-1], _LEAVING) or not _same(node.body, after):
            return None
        return filling(span)
    first = tree.span(node.orelse[0])
    if tree.lines[first.line - 1][: first.column].strip() or not _same(node.body, node.orelse):
        return None
    more = first.column - span.column
    lines = tree.lines[first.line - 1 : span.end_line]
    if more <= 0 or any(line[:more].strip() for line in lines):
        return None
    head = filling(Span(*span[:2], first.line - 1, 0)).text
    return Piece(span, "\n".join([head, *(line[more:] for line in lines)]))


def _complains(tree: Tree, node: ast.If) -> bool:
    """Tell whether an `if` does no more than raise an error, where a mark is missing."""
    return (
        all(isinstance(stmt, ast.Raise) for stmt in node.body)
        and isinstance(node.test, ast.UnaryOp)
        and isinstance(node.test.op, ast.Not)
        and _is_there(node.test.operand)
        and not tree.in_try(node)
    )


def _is_there(test: ast.expr) -> bool:
    """Tell whether a test is that a mark is there: ``hasattr(optimizer, "_amp_stash")``."""
    return (
        isinstance(test, ast.Call)
        and isinstance(test.func, ast.Name)
        and test.func.id in ("hasattr", "getattr")
    )


def _same(one: list[ast.stmt] | list[ast.expr], other: list[ast.stmt] | list[ast.expr]) -> bool:
    return len(one) == len(other) and all(map(same, one, other))


def _binds_weaker(node: ast.expr) -> bool:
    return not isinstance(node, ast.Call | ast.Name | ast.Attribute | ast.Subscript | ast.Constant)
