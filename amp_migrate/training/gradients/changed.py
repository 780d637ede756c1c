"""Where gradients of parameters become anything but a multiple of what they are, or empty: they are put in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from amp_migrate.facts.below import every
from amp_migrate.facts.constants import is_none, number
from amp_migrate.facts.paths import argument, called_on, tail
from amp_migrate.project import Module
from amp_migrate.training.bindings import bound_value

_COPIES = "copy_"
_CHANGES = frozenset({"add_", "addcdiv_", "addcmul_", _COPIES, "lerp_", "sub_"})
_MAKES_ROOM = frozenset(
    {"empty", "empty_like", "new", "new_empty", "new_zeros", "zero_", "zeros", "zeros_like"}
)
_FILLS = {"fill_": 0, "full": 1, "full_like": 1, "new_full": 1}
_MOVES = frozenset(
    {"clone", "contiguous", "cuda", "float", "half", "requires_grad_", "to", "type", "type_as"}
)
_VIEWS = frozenset(
    {"detach", "detach_", "flatten", "reshape", "squeeze", "unsqueeze", "view", "view_as"}
)
_COLLECTS = frozenset({"enumerate", "list", "reversed", "sorted", "tuple", "zip"})


def given(module: Module, gradient: ast.expr) -> ast.expr | None:
    """Return `v` of ``x.grad = v``, ``x.grad += v``, and of ``x.grad.copy_(v)`` and its like, through ``.data`` as well.

    None stands for what changes nothing, or leaves a gradient empty.
    """
    value = _given(module, gradient)
    return None if value is None or makes_room(value) else value


def named(module: Module, node: ast.AST) -> Iterator[tuple[ast.Attribute, ast.expr]]:
    """Yield gradients that a node changes by a name, each with that name: ``g += v`` behind ``g = x.grad``."""
    changes = isinstance(node, ast.AugAssign) or (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _CHANGES
    )
    name = next((n for n in ast.iter_child_nodes(node)), None) if changes else None
    while isinstance(name, ast.Attribute):
        name = name.value
    if isinstance(name, ast.Name) and given(module, name) is not None:
        yield from ((gradient, name) for gradient in _held(module, name, set()))


def is_put(module: Module, gradient: ast.expr) -> bool:
    """Tell whether a gradient that is changed becomes what was worked out apart, as in gradient surgery."""
    value = given(module, gradient)
    return value is not None and not _is_of_gradients(module, value) and _replaces(module, gradient)


def is_data(node: ast.AST | None) -> TypeGuard[ast.Attribute]:
    """Tell whether a node is ``x.data``."""
    return isinstance(node, ast.Attribute) and node.attr == "data"


def _given(module: Module, gradient: ast.expr) -> ast.expr | None:
    place, up = _place(module, gradient)
    if isinstance(up, ast.Attribute) and up.attr in _CHANGES:
        call = module.tree.call_of(up)
        return call.args[0] if call is not None and call.args else None
    if isinstance(up, ast.AugAssign) and up.target is place:
        return up.value if isinstance(up.op, ast.Add | ast.Sub) else None
    stores = isinstance(place, ast.Attribute) and isinstance(place.ctx, ast.Store)
    return up.value if stores and isinstance(up, ast.Assign | ast.AnnAssign) else None


def _replaces(module: Module, gradient: ast.expr) -> bool:
    """Tell whether nothing of what a gradient was is left in what it becomes."""
    _, up = _place(module, gradient)
    return (
        up.attr == _COPIES if isinstance(up, ast.Attribute) else not isinstance(up, ast.AugAssign)
    )


def _place(module: Module, gradient: ast.expr) -> tuple[ast.expr, ast.AST | None]:
    """Return a gradient, or its data where a program asks for these, and what stands around that."""
    up = module.tree.parent(gradient)
    if is_data(up):
        return up, module.tree.parent(up)
    return gradient, up


def _held(module: Module, node: ast.AST, seen: set[ast.AST]) -> Iterator[ast.Attribute]:
    """Yield the gradients that an expression gives as they are, not copies, or what is worked out of them."""
    if isinstance(node, ast.Attribute) and node.attr == "grad":
        yield node
        return
    onward: list[ast.expr | None] = []
    if isinstance(node, ast.Name):
        fresh = [binding for binding in module.scopes.bound(node) if binding not in seen]
        seen.update(fresh)
        onward = [bound_value(module, binding) for binding in fresh]
    elif isinstance(node, ast.Call):
        view = isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS
        onward = [called_on(node)] if view else [*node.args] if tail(node) in _COLLECTS else []
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        onward = [node.elt]
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        onward = [*node.elts]
    elif isinstance(node, ast.IfExp):
        onward = [node.body, node.orelse]
    elif isinstance(node, ast.Starred | ast.Subscript) or is_data(node):
        onward = [node.value]
    for value in onward:
        if value is not None:
            yield from _held(module, value, seen)


def makes_room(value: ast.expr | None) -> bool:
    """Tell whether a value is None, or such as every gradient begins with, zeros as well, wherever they are moved."""
    if value is None or is_none(value):
        return value is not None
    if not isinstance(value, ast.Call):
        return False
    name = value.func.attr if isinstance(value.func, ast.Attribute) else tail(value)
    if name in _FILLS:
        filling = argument(value, "fill_value", _FILLS[name]) or argument(value, "value")
        return number(filling) == 0
    if name in _VIEWS or name in _MOVES:
        return makes_room(called_on(value))
    return name in _MAKES_ROOM


def _is_of_gradients(module: Module, value: ast.expr) -> bool:
    """Tell whether an expression has a gradient in it, itself or as what its name is bound to: it may be scaled."""
    bound = module.scopes.bound(value) if isinstance(value, ast.Name) else []
    held = [value, *(v for b in bound if (v := bound_value(module, b)) is not None)]
    return any(
        isinstance(part, ast.Attribute) and part.attr in ("grad", "_grad")
        for one in held
        for part in every(one)
    )
