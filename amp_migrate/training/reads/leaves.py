"""Tensors that ask for gradients of their own, and are written in place between the forwards that they are given to.

Autocast keeps the fp16 copy of such a leaf as it does that of a weight, where Apex kept those of parameters alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from amp_migrate.facts.constants import is_false
from amp_migrate.facts.paths import all_given, tail
from amp_migrate.project import Function, Project
from amp_migrate.project.once import kept
from amp_migrate.training.beliefs import RUN_IN_HALF
from amp_migrate.training.bindings import values_of
from amp_migrate.training.reads.unseen import is_known

_NOT_WRITTEN = frozenset({"requires_grad_", "retain_grad_", "share_memory_"})
_PARAMETERS = frozenset({"Parameter", "UninitializedParameter"})
_PRODUCTS = RUN_IN_HALF | {"addmm", "baddbmm", "bmm", "einsum", "matmul", "mm", "mv"}


@dataclass(frozen=True, eq=False, slots=True)
class Leaf:
    """A variable of a function that holds such a tensor: what writes it, what may cast it, and what binds it anew."""

    function: Function
    writes: tuple[ast.expr | ast.AugAssign, ...]
    casts: tuple[ast.expr, ...]
    bound: tuple[ast.AST, ...]


def leaves(project: Project, function: Function) -> list[Leaf]:
    """Return the leaves that a function writes in place and gives to forwards."""
    return kept(project, (leaves, function), lambda: [*_leaves(project, function)])


def _leaves(project: Project, function: Function) -> Iterator[Leaf]:
    written: dict[str, list[ast.expr | ast.AugAssign]] = {}
    for node in function.own_nodes:
        tensor = _written(node)
        if tensor is not None and isinstance(node, ast.expr | ast.AugAssign):
            written.setdefault(tensor.id, []).append(node)
    if not written:
        return
    names = [n for n in function.own_nodes if isinstance(n, ast.Name) and n.id in written]
    multiplied = [n for n in function.own_nodes if isinstance(n, ast.Call | ast.BinOp)]
    for name, writes in written.items():
        own = [n for n in names if n.id == name]
        given = [node for node in multiplied if _given(node, name)]
        casts = tuple(node for node in given if _may_cast(project, function, node))
        given_in = name in function.parameters.names and any(map(_takes_data, writes))
        if casts and (given_in or _asks(function, own)):
            bound = tuple(n for n in own if isinstance(n.ctx, ast.Store) and not _adds(function, n))
            yield Leaf(function, tuple(writes), casts, bound)


def _written(node: ast.AST) -> ast.Name | None:
    """Return the name of the tensor that a node writes in place: ``x.data = y``, ``x.data.add_(y)``, ``x += y``, ``x[i] = y``."""
    if isinstance(node, ast.AugAssign):
        return _whole(node.target)
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
        data = isinstance(node, ast.Subscript) or node.attr == "data"
        return _whole(node) if data else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    method = node.func.attr
    in_place = method.endswith("_") and not method.startswith("_") and method not in _NOT_WRITTEN
    return _whole(node.func.value) if in_place else None


def _takes_data(node: ast.AST) -> bool:
    """Tell whether a write goes past the gradients of a tensor: ``x.data.add_(y)``."""
    return any(isinstance(part, ast.Attribute) and part.attr == "data" for part in _target(node))


def _target(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a write is spelt with, without what it writes."""
    written = node.target if isinstance(node, ast.AugAssign) else node
    return ast.walk(written.func if isinstance(written, ast.Call) else written)


def _whole(node: ast.expr) -> ast.Name | None:
    """Return `x` of ``x.data`` and ``x[i]``."""
    while isinstance(node, ast.Subscript) or (
        isinstance(node, ast.Attribute) and node.attr == "data"
    ):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _given(node: ast.Call | ast.BinOp, name: str) -> bool:
    """Tell whether a call or a product of matrices is given a tensor itself."""
    if isinstance(node, ast.Call):
        given = all_given(node)
    else:
        given = [node.left, node.right] if isinstance(node.op, ast.MatMult) else []
    return any(isinstance(part, ast.Name) and part.id == name for part in given)


def _may_cast(project: Project, function: Function, node: ast.Call | ast.BinOp) -> bool:
    """Tell whether casts may make a copy of what a node is given."""
    if isinstance(node, ast.BinOp) or project.callees(node):
        return True
    name = project.external(function.module, node.func)
    if name is not None and name.startswith("torch."):
        return tail(node) in _PRODUCTS
    return not is_known(node, name)


def _asks(function: Function, names: list[ast.Name]) -> bool:
    """Tell whether the tensor of some names is made to ask for gradients, and is no parameter."""
    tree, asks = function.module.tree, False
    for name in names:
        up = tree.parent(name)
        if isinstance(up, ast.Attribute):
            statement = tree.parent(up)
            stored = isinstance(up.ctx, ast.Store) and isinstance(statement, ast.Assign)
            if up.attr == "requires_grad" and isinstance(statement, ast.Assign) and stored:
                asks = asks or not is_false(statement.value)
            if isinstance(statement, ast.Call) and statement.func is up:
                asks = asks or _made_asking(statement)
        for value in values_of(function.module, name) if isinstance(name.ctx, ast.Store) else ():
            made = [n for n in ast.walk(value) if isinstance(n, ast.Call)]
            if any(tail(call) in _PARAMETERS for call in made):
                return False
            asks = asks or any(map(_made_asking, made))
    return asks


def _made_asking(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
        return not any(map(is_false, all_given(call)))
    return any(k.arg == "requires_grad" and not is_false(k.value) for k in call.keywords)


def _adds(function: Function, name: ast.Name) -> bool:
    return isinstance(function.module.tree.parent(name), ast.AugAssign)
