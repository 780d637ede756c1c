"""Which opt_levels an expression may be, as far as the file says, and when they cast."""

from __future__ import annotations

import ast
from collections.abc import Callable

from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import argument, tail
from amp_migrate.facts.scopes import assigned
from amp_migrate.flow.condition import FALSE, TRUE, Condition, negate
from amp_migrate.project import Module

ALL = frozenset({"O0", "O1", "O2", "O3"})
OF_GIVEN = frozenset({"O2", "O3"})
"""The levels that cast the networks that they are given, and no function of torch."""
Spell = Callable[[ast.expr], str]


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


def cast(node: ast.expr | None, segment: Spell) -> tuple[str | None, Condition]:
    """Return the level that an expression always is, if it is one, and when it is not O0."""
    if node is None:
        return "O1", TRUE
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value, FALSE if node.value == "O0" else TRUE
    if isinstance(node, ast.IfExp):
        return None, _choice(node, segment)
    return None, Condition(None, f'{_compared(node, segment)} != "O0"')


def patched(
    node: ast.expr | None, on: Condition, levels: frozenset[str], segment: Spell
) -> Condition:
    """Return when a level is O1, where `on` says that it is not O0."""
    if not levels & OF_GIVEN:
        return on if levels else FALSE
    if node is None or "O1" not in levels:
        return FALSE
    if isinstance(node, ast.IfExp):
        arms = (node.body, node.orelse)
        of_one = [string(arm) == "O1" for arm in arms]
        if all(string(arm) is not None for arm in arms):
            test = Condition(None, segment(node.test))
            return test if of_one[0] else negate(test)
    return Condition(None, f'{_compared(node, segment)} == "O1"')


def _compared(node: ast.expr, segment: Spell) -> str:
    """Return the text of an expression as one side of a comparison."""
    text = segment(node)
    plain = ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.JoinedStr
    return text if isinstance(node, plain) else f"({text})"


def _choice(node: ast.IfExp, segment: Spell) -> Condition:
    yes = node.body.value if isinstance(node.body, ast.Constant) else None
    no = node.orelse.value if isinstance(node.orelse, ast.Constant) else None
    if isinstance(yes, str) and isinstance(no, str):
        if "O0" not in (yes, no):
            return TRUE
        if yes == no:
            return FALSE
        test = Condition(None, segment(node.test))
        return test if no == "O0" else negate(test)
    return Condition(None, f'({segment(node)}) != "O0"')
