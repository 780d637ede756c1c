"""States that a GradScaler gives while it is off: they are empty, and one that is on raises where it loads one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.below import conjuncts
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.condition import Condition
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.plan.model import Edit, ReplaceExpression
from amp_migrate.rules.base import Context


def may_be_empty(context: Context) -> bool:
    """Tell whether a state may be saved while the GradScaler is off."""
    conditions = {creation.scales for creation in context.creations.values()}
    if all(condition.value is True for condition in conditions):
        return False
    saves = [s for s in context.unit.of(Kind.STATE_DICT) if not context.is_gone(s.node)]
    saves = [s for s in saves if not is_none_when_off(context, s)]
    return any(not _holds(condition, site) for site in saves for condition in conditions)


def is_saved_bare(context: Context) -> bool:
    """Tell whether such a state is saved, and no test around that may ask whether AMP is on."""
    saves = context.unit.of(Kind.STATE_DICT)
    return any(not any(True for _ in s.module.tree.sides(s.node)) for s in saves)


def asked_beside(context: Context, site: Site) -> ast.IfExp | None:
    """Return the conditional around a call that saves, which only asks for Apex: ``amp.state_dict() if amp is not None else None``."""
    up = site.module.tree.parent(site.node)
    if not isinstance(up, ast.IfExp) or up.body is not site.node or site.call.args:
        return None
    return up if context.unit.availability[site.module].known(up.test) else None


def is_none_when_off(context: Context, site: Site) -> bool:
    """Tell whether what is saved is None where `amp` itself was, which a program may ask when it loads."""
    choice = asked_beside(context, site)
    asks_amp = choice is not None and any(
        isinstance(n, ast.Name) and context.unit.project.external(site.module, n) == "apex.amp"
        for n in ast.walk(choice.test)
    )
    return asks_amp and any(c.scales.value is None for c in context.creations.values())


def _holds(condition: Condition, site: Site) -> bool:
    """Tell whether a condition holds wherever the tests around a place have come out as they did."""
    if condition.value is not None or not condition.text:
        return condition.value is True
    known: Assumption | None = NOTHING
    for up, taken in site.module.tree.sides(site.node):
        known = refine(known, up.test, taken) if known is not None else None
    asked = ast.parse(condition.text, mode="eval").body
    return known is None or evaluate(asked, known) is True


def asked_for_truth(site: Site, native: Mapping[ast.expr, str]) -> Iterator[tuple[ast.expr, Edit]]:
    """Yield the tests that ask whether there is a state, before it is loaded, each with the edit by which it asks whether that holds anything.

    `native` are the keys that are renamed, as they are spelt then.
    """
    tree = site.module.tree
    for test in _asked(site):
        if is_key(test):
            key = native.get(test.left, tree.segment(test.left))
            text = f"{tree.segment(test.comparators[0])}.get({key})"
            yield test, ReplaceExpression(tree.span(test), text)
        elif isinstance(test, ast.Compare):
            yield test, ReplaceExpression(tree.span(test), tree.segment(test.left))


def is_asked(site: Site) -> bool:
    """Tell whether a state is loaded where a test of it has come out true, or will be asked for that."""
    return any(True for _ in _asked(site))


def _asked(site: Site) -> Iterator[ast.expr]:
    """Yield what has come out true of the state that a call loads, where it does: ``state is not None``, ``state``, ``"amp" in held``."""
    if not site.call.args:
        return
    for up, taken in site.module.tree.sides(site.node):
        for test in conjuncts(up.test) if taken else ():
            asked = test.left if _is_there(test) else test
            if _are_same(asked, site.call.args[0]) or _holds_key(test, site.call.args[0]):
                yield test


def _is_there(test: ast.expr) -> TypeGuard[ast.Compare]:
    """Tell whether a test asks whether something is not None."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.IsNot):
        return False
    other = test.comparators[0]
    return isinstance(other, ast.Constant) and other.value is None


def is_key(test: ast.expr) -> TypeGuard[ast.Compare]:
    """Tell whether a test asks whether a mapping has a key."""
    return isinstance(test, ast.Compare) and [*map(type, test.ops)] == [ast.In]


def _holds_key(test: ast.expr, state: ast.expr) -> bool:
    """Tell whether a test asks for the key under which a state is read: ``"amp" in held`` of ``held["amp"]``."""
    if not is_key(test) or not isinstance(state, ast.Subscript):
        return False
    asked, read = (test.comparators[0], test.left), (state.value, state.slice)
    return [*map(ast.unparse, asked)] == [*map(ast.unparse, read)]


def _are_same(asked: ast.expr, state: ast.expr) -> bool:
    """Tell whether two expressions are one state; that of a key may be asked for by ``get``."""
    if isinstance(asked, ast.Call) and isinstance(asked.func, ast.Attribute):
        if asked.func.attr == "get" and isinstance(state, ast.Subscript):
            given = [ast.unparse(part) for part in (asked.func.value, *asked.args[:1])]
            return given == [ast.unparse(state.value), ast.unparse(state.slice)]
    return ast.unparse(asked) == ast.unparse(state)
