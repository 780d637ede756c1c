"""The remainders that a test asks for, as the test of an accumulation boundary does that counts micro-batches."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.closure import closure
from amp_migrate.facts.constants import string
from amp_migrate.project import Function, Project
from amp_migrate.project.reach import leading_to
from amp_migrate.training.bindings import returned
from amp_migrate.training.origins.reaching import Reaching

_Asked = tuple[Function, ast.expr]


def is_counted(project: Project, reached: Reaching, function: Function, node: ast.AST) -> bool:
    """Tell whether a test around a node of a function, or around the calls that lead there, counts micro-batches."""
    return any(
        any(remainders(project, reached, where, up.test))
        for where, inner in leading_to(project, (function, node))
        for up, _ in where.module.tree.sides(inner)
    )


def remainders(
    project: Project, reached: Reaching, function: Function, test: ast.expr
) -> Iterator[tuple[Function, ast.BinOp]]:
    """Yield the remainders that a test asks for, each with the function that computes it."""
    for where, asked in closure([(function, test)], lambda item: _onward(project, reached, *item)):
        for node in ast.walk(asked):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and not _formats(node):
                yield where, node


def _formats(node: ast.BinOp) -> bool:
    return isinstance(node.left, ast.JoinedStr) or string(node.left) is not None


def _onward(
    project: Project, reached: Reaching, function: Function, node: ast.expr
) -> Iterator[_Asked]:
    """Yield what decides an expression: its operands, what its variables hold, what its functions return."""
    if isinstance(node, ast.BoolOp):
        yield from ((function, value) for value in node.values)
    elif isinstance(node, ast.UnaryOp):
        yield function, node.operand
    elif isinstance(node, ast.Compare):
        yield from ((function, value) for value in (node.left, *node.comparators))
    elif isinstance(node, ast.NamedExpr):
        yield function, node.value
    elif isinstance(node, ast.Name):
        for value in reached.of(function, node):
            if isinstance(value, ast.expr):
                yield reached.holder(function, value), value
    elif isinstance(node, ast.Call):
        callees = project.callees(node)
        yield from ((callee, end) for callee in callees for end in returned(callee))
    elif isinstance(node, ast.Attribute):
        for method in project.methods(function.module, node.value, node.attr):
            if method.is_property:
                yield from ((method, end) for end in returned(method))
