"""Conditional expressions around a call of Apex, and in the loss scale that it is given."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.facts.constants import number
from amp_migrate.flow.condition import Condition, negate

_LOOKS = ("bool", "getattr", "hasattr", "int", "isinstance", "len")
_ACTS = ast.Call | ast.Await | ast.NamedExpr | ast.Yield | ast.YieldFrom


def choices(site: Site) -> Iterator[tuple[ast.IfExp, ast.AST]]:
    """Yield the conditional expressions in which a site stands, inner first, each with the part that holds it."""
    child: ast.AST = site.node
    for up in site.module.tree.ancestors(site.node):
        if isinstance(up, ast.stmt | ast.Lambda):
            return
        if isinstance(up, ast.IfExp):
            yield up, child
        child = up


def without_choice(site: Site, given: str) -> ast.AST:
    """Return a site with the choices around it that come to nothing once it gives what its other arm gives.

    `given` is the text of what takes the place of the site.
    """
    whole: ast.AST = site.node
    for choice, child in choices(site):
        other = choice.orelse if child is choice.body else choice.body
        if child is not whole or child is choice.test or acts(choice.test):
            break
        if ast.unparse(other) != ast.unparse(ast.parse(given, mode="eval").body):
            break
        whole = choice
    return whole


def acts(test: ast.expr) -> bool:
    """Tell whether a test does more than to look at values, so that it may come out otherwise a second time."""
    return any(isinstance(part, _ACTS) and not _looks(part) for part in ast.walk(test))


def _looks(node: ast.AST) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Name) and func.id in _LOOKS


def dynamic_unless_one(node: ast.expr, segment: Callable[[ast.expr], str]) -> Condition | None:
    """Return when a loss scale is dynamic that is 1 otherwise, by a conditional expression."""
    if not isinstance(node, ast.IfExp):
        return None
    test = Condition(None, segment(node.test))
    for dynamic, other, condition in (
        (node.body, node.orelse, test),
        (node.orelse, node.body, negate(test)),
    ):
        if isinstance(dynamic, ast.Constant) and dynamic.value == "dynamic" and number(other) == 1:
            return condition
    return None
