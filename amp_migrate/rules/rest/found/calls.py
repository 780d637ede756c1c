"""Calls of Apex's classes: what they are given, and the text of the call that takes their place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from amp_migrate.apex.sites import Site
from amp_migrate.facts.tree import Tree

WIDTH = 100


def call_of(site: Site) -> ast.Call | None:
    """Return the call whose function a use is."""
    return site.module.tree.call_of(site.node)


def arguments(call: ast.Call, parameters: Sequence[str]) -> dict[str, ast.expr] | None:
    """Return the arguments of a call by name, in their order; None where a star hides some."""
    if len(call.args) > len(parameters) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    given = dict(zip(parameters, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            return None
        given[keyword.arg] = keyword.value
    return given


def is_constant(node: ast.expr | None, *values: object) -> bool:
    """Tell whether an argument is absent or one of some constants."""
    return node is None or (isinstance(node, ast.Constant) and node.value in values)


def call_text(site: Site, call: ast.Call, function: str, given: Iterable[str]) -> str:
    """Return the text of a call at the place of another, on several lines where it would be too long."""
    tree = site.module.tree
    parts = list(given)
    flat = f"{function}({', '.join(parts)})"
    span = tree.span(call)
    tail = len(tree.lines[span.end_line - 1]) - span.end_column
    if "\n" in flat or span.column + len(flat) + tail <= WIDTH:
        return flat
    unit = indentation(tree)
    return f"{function}(\n" + "".join(f"{unit}{part},\n" for part in parts) + ")"


def indentation(tree: Tree) -> str:
    """Return what a block of the file is indented by."""
    for stmt in tree.nodes(ast.Return, ast.Assign, ast.Expr, ast.ImportFrom):
        holder = tree.holder(stmt)
        line = tree.lines[stmt.lineno - 1][: stmt.col_offset]
        if isinstance(holder, ast.stmt) and stmt.lineno > holder.lineno and not line.strip():
            return line[holder.col_offset :] or "    "
    return "    "
