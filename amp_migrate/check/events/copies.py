"""Copies of expressions whose names remember the nodes that they were."""

from __future__ import annotations

import ast


def copied(node: ast.expr) -> ast.expr:
    """Return a copy whose names remember the node that they were."""
    made = _copy(node)
    assert isinstance(made, ast.expr)
    return made


def _copy(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.Name):
        return _with_origin(node)
    made = type(node).__new__(type(node))
    for name, value in vars(node).items():
        if isinstance(value, list):
            value = [_copy(item) if isinstance(item, ast.AST) else item for item in value]
        setattr(made, name, _copy(value) if isinstance(value, ast.AST) else value)
    return made


def _with_origin(node: ast.Name) -> ast.Name:
    made = ast.Name(node.id, ast.Load())
    made.original = node  # type: ignore[attr-defined]
    return made
