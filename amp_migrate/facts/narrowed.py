"""Reads of names that a test around them tells to hold a text or a number: ``if isinstance(model, str):``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.below import conjuncts
from amp_migrate.facts.scopes import Scopes
from amp_migrate.facts.tree import Tree

_PLAIN = frozenset({"str", "bytes", "int", "float", "bool"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def asked_for_plain(tree: Tree, scopes: Scopes) -> frozenset[str]:
    """Return the names of a file that some test asks for a text or a number."""
    asked = (_asked(scopes, call) for call in tree.nodes(ast.Call))
    return frozenset(name for name in asked if name is not None)


def is_plain(tree: Tree, scopes: Scopes, name: ast.Name) -> bool:
    """Tell whether a name holds a text or a number where it is read, as the branch that it stands in asks for that."""
    inner: ast.AST = name
    up = tree.parent(inner)
    while up is not None and not isinstance(up, _SCOPES):
        if any(_asked(scopes, test) == name.id for test in _held(up, inner)):
            return not _is_bound_within(up, name.id)
        inner, up = up, tree.parent(up)
    return False


def _held(up: ast.AST, inner: ast.AST) -> Iterator[ast.expr]:
    """Yield what holds in a part of a node."""
    if (isinstance(up, ast.If) and inner in up.body) or (
        isinstance(up, ast.IfExp) and inner is up.body
    ):
        yield from conjuncts(up.test)
    elif isinstance(up, ast.BoolOp) and isinstance(up.op, ast.And):
        for value in up.values:
            if value is inner:
                return
            yield from conjuncts(value)


def _asked(scopes: Scopes, test: ast.expr) -> str | None:
    """Return the name that a call asks for being a text or a number."""
    if not isinstance(test, ast.Call) or scopes.builtin(test.func) != "isinstance":
        return None
    if len(test.args) != 2 or test.keywords:
        return None
    asked, types = test.args
    every = types.elts if isinstance(types, ast.Tuple) else [types]
    plain = bool(every) and all(scopes.builtin(each) in _PLAIN for each in every)
    return asked.id if plain and isinstance(asked, ast.Name) else None


def _is_bound_within(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load)
        for part in ast.walk(node)
    )
