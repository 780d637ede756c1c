"""The nodes below a node of a syntax tree, as `ast` walks them, without the marks of contexts and operators."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from typing import TypeVar

E = TypeVar("E", bound=ast.expr)
_PLAIN = frozenset(
    {
        *("id", "attr", "arg", "ctx", "op", "ops", "kind", "type_comment", "level", "module"),
        *("asname", "conversion", "simple", "is_async", "lineno", "tag", "kwd_attrs", "rest"),
        *("name", "str"),
    }
)
BLOCKS = ("body", "orelse", "finalbody")
_LEAVES = (ast.Constant, ast.Name, ast.Global, ast.Nonlocal, ast.alias, ast.MatchSingleton)
# Nodes whose lists have gaps.
_GAPPED = frozenset({ast.Dict, ast.arguments})


def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    if issubclass(kind, _LEAVES):
        return ()
    plain = _PLAIN - {"name"} if kind.__name__ == "TypeAlias" else _PLAIN
    return tuple(name for name in kind._fields if name not in plain)


# The fields of each kind of node that hold nodes or lists of them.
FIELDS: Mapping[type[ast.AST], tuple[str, ...]] = {
    kind: _fields(kind)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes straight below a node, in the order of `ast`."""
    found: list[ast.AST] = []
    for name in FIELDS[type(node)]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += value
        elif value is not None:
            found.append(value)
    return [item for item in found if item is not None] if type(node) in _GAPPED else found


def every(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it, outer ones first, in the order of `ast.walk`."""
    queue = [node]
    add = queue.append
    for here in queue:
        yield here
        kind = type(here)
        if kind in _GAPPED:
            queue += children(here)
            continue
        for name in FIELDS[kind]:
            value = getattr(here, name, None)
            if value.__class__ is list:
                queue += value
            elif value is not None:
                add(value)


def with_parts(node: E, parts: Mapping[ast.AST, ast.expr]) -> E:
    """Return a copy of an expression with others in place of some of its parts, and nothing in place of parts of those."""
    return copy.deepcopy(node, {id(part): other for part, other in parts.items()})


def blocks(stmt: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of a compound statement, with those of its handlers and cases."""
    holders = (stmt, *getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ()))
    return [held for at in holders for name in BLOCKS if (held := getattr(at, name, None))]


def names_in(node: ast.AST) -> set[str]:
    """Return the names and attributes that stand in an expression."""
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in every(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


def behind_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[ast.stmt]:
    """Return the statements of a function or class without its docstring."""
    return node.body[ast.get_docstring(node, clean=False) is not None :]


def atoms(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the tests that `and`, `or` and `not` join."""
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from atoms(value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from atoms(node.operand)
    else:
        yield node


def outcomes(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what an expression may come out as, of those between which it chooses: ``a if test else b or c``."""
    if isinstance(node, ast.IfExp | ast.BoolOp):
        arms = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
        for arm in arms:
            yield from outcomes(arm)
    else:
        yield node.value if isinstance(node, ast.NamedExpr) else node


def conjuncts(test: ast.expr) -> Iterator[ast.expr]:
    """Yield what has come out true where a test has: the parts of an `and`, or the test itself."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from conjuncts(part)
    else:
        yield test
