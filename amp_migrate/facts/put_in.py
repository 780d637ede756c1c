"""Expressions with others in place of some of their names."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import TypeVar

N = TypeVar("N", bound=ast.expr)


def put_in(node: N, given: Mapping[str, ast.expr]) -> N:
    """Return a copy of an expression with what is given in place of names."""
    found: N = _PutIn(given).visit(copy.deepcopy(node))
    return found


class _PutIn(ast.NodeTransformer):
    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._given.get(node.id, node)
