"""Gradients that `torch.autograd.grad` takes in a statement of its own, which computes nothing else that casts change."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from amp_migrate.facts.paths import argument, walk
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.forwards.indifferent import Indifferent
from amp_migrate.training.steps import takes_gradients
from amp_migrate.training.types import wide

_PLAIN = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)
_LATER = (ast.Await, ast.GeneratorExp, ast.Lambda, ast.Yield, ast.YieldFrom)
_SIGNS = (ast.UAdd, ast.USub)
_JOINS = (ast.Add, ast.Sub, ast.Mult, ast.Div)


class Taken(NamedTuple):
    """A statement that takes gradients by `call`; without casts it computes the same once `summed` are fp32 in it."""

    function: Function
    statement: ast.stmt
    call: ast.Call
    summed: tuple[ast.expr, ...]


def taken_in(
    project: Project, indifferent: Indifferent, function: Function, statement: ast.stmt
) -> Taken | None:
    """Return what a statement takes gradients of; None where it takes none, or computes more that casts change."""
    if not isinstance(statement, _PLAIN):
        return None
    module = function.module
    calls = [n for n in walk(statement) if isinstance(n, ast.Call)]
    takes = [call for call in calls if takes_gradients(project, module, call)]
    if not takes or any(isinstance(node, _LATER) for node in ast.walk(statement)):
        return None
    given = [argument(call, "outputs", 0) for call in takes]
    sums = dict(s for node in given if node is not None for s in _sums(project, module, node))
    if not indifferent.part(function, statement, frozenset([*takes, *sums])):
        return None
    summed = (of for of in sums.values() if not wide.is_wide(project, module, of))
    return Taken(function, statement, takes[0], tuple(summed))


def _sums(project: Project, module: Module, node: ast.expr) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield the sums that an expression adds up to, each with the tensor whose sum it is: autocast computes them in fp32."""
    if isinstance(node, ast.Tuple | ast.List):
        for part in node.elts:
            yield from _sums(project, module, part)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, _SIGNS):
        yield from _sums(project, module, node.operand)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, _JOINS):
        yield from _sums(project, module, node.left)
        yield from _sums(project, module, node.right)
    elif wide.is_sum(node):
        given = wide.computed(project, module, node)
        if given and not isinstance(given[0], ast.Starred):
            yield node, given[0]
