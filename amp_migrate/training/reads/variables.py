"""What variables are given, what is put into them, and what they take items out of."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.facts.paths import tail
from amp_migrate.project import Module
from amp_migrate.training.beliefs import HAND_OUT_PARAMETERS
from amp_migrate.training.bindings import bound_value

_KEEPS = frozenset(
    ["append", "extend", "insert", "add_module", "register_module", "setdefault", "update"]
)
_GO_THROUGH = frozenset({"enumerate", "iter", "list", "reversed", "tuple", "zip"})
_GIVE_ITEMS = frozenset(
    {"children", "items", "modules", "named_children", "named_modules", "values"}
)

_COLLECTS = frozenset({"chain", "filter", "list", "reversed", "set", "sorted", "tuple"})


def given_to(module: Module, binding: ast.AST) -> ast.expr | None:
    """Return what a variable is given by a statement: ``name += value`` keeps what it had, which others give it."""
    up = module.tree.parent(binding)
    return up.value if isinstance(up, ast.AugAssign) else bound_value(module, binding)


def put_into(module: Module, node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the variables and attributes into whose value a call or an assignment puts something, with that."""
    values: Sequence[ast.expr | None] = ()
    if isinstance(node, ast.Subscript):
        values = [given_to(module, node)] if isinstance(node.ctx, ast.Store) else []
        holder: ast.expr = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        values = node.args[1:] or node.args if node.func.attr in _KEEPS else []
        holder = node.func.value
    else:
        return
    while isinstance(holder, ast.Subscript):
        holder = holder.value
    yield from ((holder, value) for value in values if value is not None)


def taken_out_of(module: Module, name: ast.Name) -> Iterator[ast.expr | None]:
    """Yield the attributes and items that a variable is, or is taken out of; None where it may be something else."""
    yield from _out_of(module, name, set())


def _out_of(module: Module, node: ast.expr | None, seen: set[ast.AST]) -> Iterator[ast.expr | None]:
    """Yield what an expression is, or takes items out of."""
    if isinstance(node, ast.Attribute | ast.Subscript):
        yield node
    elif isinstance(node, ast.IfExp):
        yield from _out_of(module, node.body, seen)
        yield from _out_of(module, node.orelse, seen)
    elif isinstance(node, ast.Name):
        bindings = module.scopes.bound(node)
        if not bindings:
            yield None
        for binding in bindings:
            if binding not in seen:
                seen.add(binding)
                yield from _out_of(module, given_to(module, binding), seen)
    elif isinstance(node, ast.Call) and tail(node) in _GIVE_ITEMS and not node.args:
        held = node.func.value if isinstance(node.func, ast.Attribute) else None
        yield from _out_of(module, held, seen)
    elif (
        isinstance(node, ast.Call) and module.scopes.builtin(node.func) in _GO_THROUGH and node.args
    ):
        for given in node.args:
            yield from _out_of(module, given, seen)
    else:
        yield None


def hands_over(module: Module, node: ast.expr) -> bool:
    """Tell whether an expression is the parameters of a network, or a collection of them."""
    return _hands_over(module, node, set())


def _hands_over(module: Module, node: ast.expr, seen: set[ast.AST]) -> bool:
    if node in seen:
        return False
    seen.add(node)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in HAND_OUT_PARAMETERS:
            return not node.args
        named = node.func.attr if isinstance(node.func, ast.Attribute) else None
        named = node.func.id if isinstance(node.func, ast.Name) else named
        return named in _COLLECTS and any(_hands_over(module, a, seen) for a in node.args)
    if isinstance(node, ast.List | ast.Tuple):
        return any(_hands_over(module, item, seen) for item in node.elts)
    if isinstance(node, ast.Starred):
        return _hands_over(module, node.value, seen)
    if not isinstance(node, ast.Name):
        return False
    scope = module.scopes.owner(node)
    bindings = module.scopes.bindings(scope, node.id) if scope else []
    values = [bound_value(module, b) for b in bindings if not _is_text(module, b)]
    return any(
        isinstance(value, ast.Call | ast.List | ast.Tuple) and _hands_over(module, value, seen)
        for value in values
        if value is not None
    )


def _is_text(module: Module, binding: ast.AST) -> bool:
    """Tell whether a name of a loop is what a parameter is called: the first of each pair of `named_parameters`."""
    pair = module.tree.parent(binding)
    over = bound_value(module, binding)
    named = isinstance(over, ast.Call) and tail(over) == "named_parameters"
    return named and isinstance(pair, ast.Tuple) and pair.elts[0] is binding
