"""Which opt_levels an expression may be, as far as the file says."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import argument, tail
from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Module

ALL = frozenset({"O0", "O1", "O2", "O3"})


def possible(module: Module, node: ast.expr) -> frozenset[str]:
    """Return the opt_levels that an expression may have at run time; all where that is not known."""
    return _possible(module, node, frozenset()) or ALL


def chosen(module: Module, node: ast.expr) -> ast.IfExp | None:
    """Return the choice that a variable keeps, bound once to one by what nothing in the file sets anew."""
    value = module.scopes.only_value(node)
    if not isinstance(value, ast.IfExp) or not _lasts(module, value.test):
        return None
    flag = isinstance(value.test, ast.Name | ast.Attribute)
    known = all(isinstance(arm, ast.Constant) for arm in (value.body, value.orelse))
    return value if flag or known else None


def _lasts(module: Module, test: ast.expr) -> bool:
    """Tell whether a test reads variables that are bound once and attributes that nothing in the file sets, and compares them."""
    if isinstance(test, ast.Attribute):
        return all(not isinstance(n.ctx, ast.Store) for n in module.tree.attributes(test.attr))
    if isinstance(test, ast.Compare):
        return all(_lasts(module, part) for part in (test.left, *test.comparators))
    if isinstance(test, ast.BoolOp):
        return all(_lasts(module, part) for part in test.values)
    if isinstance(test, ast.UnaryOp):
        return _lasts(module, test.operand)
    if isinstance(test, ast.Tuple | ast.List | ast.Set):
        return all(_lasts(module, part) for part in test.elts)
    if isinstance(test, ast.Name):
        return len(module.scopes.bound(test)) == 1
    return isinstance(test, ast.Constant)


def _possible(module: Module, node: ast.expr, seen: frozenset[str]) -> frozenset[str] | None:
    if isinstance(node, ast.Constant):
        return frozenset({node.value}) if isinstance(node.value, str) else None
    if isinstance(node, ast.IfExp):
        return _either(module, [node.body, node.orelse], seen)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return _either(module, node.values, seen)
    if isinstance(node, ast.Name) and node.id not in seen:
        return _variable(module, node, seen | {node.id})
    if isinstance(node, ast.Attribute):
        return _option(module, node.attr)
    return None


def _either(module: Module, nodes: list[ast.expr], seen: frozenset[str]) -> frozenset[str] | None:
    found = [_possible(module, node, seen) for node in nodes]
    known = [levels for levels in found if levels is not None]
    return frozenset().union(*known) if len(known) == len(found) else None


def _variable(module: Module, node: ast.Name, seen: frozenset[str]) -> frozenset[str] | None:
    bindings = module.scopes.bound(node)
    values = [assigned(module.tree, b) if isinstance(b, ast.Name) else None for b in bindings]
    known = [value for value in values if value is not None]
    return _either(module, known, seen) if known and len(known) == len(values) else None


def _option(module: Module, name: str) -> frozenset[str] | None:
    """Return the choices of a command line option, and the texts that the file sets it to."""
    stores = [node for node in module.tree.attributes(name) if isinstance(node.ctx, ast.Store)]
    texts = [string(value) for node in stores if (value := assigned(module.tree, node)) is not None]
    stored = {text for text in texts if text is not None}
    found = [
        call
        for call in module.tree.nodes(ast.Call)
        if tail(call) == "add_argument" and name in _names(call)
    ]
    choices = [_choices(call) for call in found]
    known = [levels for levels in choices if levels is not None]
    if len(texts) < len(stores) or None in texts or not known or len(known) < len(choices):
        return None
    return frozenset(stored).union(*known)


def _names(call: ast.Call) -> set[str]:
    """Return the attributes that an option may be read by."""
    dest = argument(call, "dest")
    named = [dest] if dest is not None else call.args
    texts = map(string, named)
    return {text.lstrip("-").replace("-", "_") for text in texts if text is not None}


def _choices(call: ast.Call) -> frozenset[str] | None:
    given = argument(call, "choices")
    if not isinstance(given, ast.List | ast.Tuple | ast.Set):
        return None
    values = [n.value for n in given.elts if isinstance(n, ast.Constant)]
    texts = [value for value in values if isinstance(value, str)]
    return frozenset(texts) if texts and len(texts) == len(given.elts) else None
