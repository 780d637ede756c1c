"""Code that only runs where AMP is off: in the other arm of the test around ``amp.initialize``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.flow.assumption import NOTHING
from amp_migrate.flow.condition import UNKNOWN, Condition, conjunction
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.placement.finding.alternatives import is_alternative, makers
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.asked import Asked
from amp_migrate.placement.making.climbing import guard
from amp_migrate.placement.making.creation import Creation
from amp_migrate.project import Function
from amp_migrate.project.rounds import rebound


def runs_unscaled(unit: Unit, function: Function, node: ast.AST) -> bool:
    """Tell whether the tests around a node say that no initialize of the unit has run, or that it scales nothing.

    A test whose branches become one, as those folded do, says nothing: what is left runs either way.
    """
    held = list(_held(unit, function, node))
    made = [_made(unit, site) for site in unit.of(Kind.INITIALIZE)]
    if not held or not made:
        return False
    asked = Asked(unit, made)
    return all(
        creation.scales.text
        and _excluded(held, ast.parse(creation.scales.text, mode="eval").body)
        and asked.told(creation.scales.text, function, [creation], training=True)
        for creation in made
    )


def trains_apart(unit: Unit, function: Function) -> bool:
    """Tell whether a method serves objects that train without Apex, beside a relative or where AMP is off."""
    return is_alternative(unit, function) or _is_made_off(unit, function)


def _is_made_off(unit: Unit, function: Function) -> bool:
    """Tell whether a method serves objects that are made in sight, only where AMP is off, and that use nothing of Apex."""
    cls = function.cls
    if cls is None or function.name == "__init__":
        return False
    if any(site.function.cls in cls.mro() for site in unit.sites):
        return False
    made, ones = makers(unit.project), (cls, *cls.subclasses())
    places = [place for one in ones for place in made.get(one, [])]
    return bool(places) and all(runs_unscaled(unit, where, call) for where, call in places)


def _held(unit: Unit, function: Function, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the tests around a node with how they come out where it runs; none whose answer may have changed since."""
    tree = function.module.tree
    for up, holds in tree.sides(node):
        test = up.test
        if up not in unit.folded and not rebound(
            unit.project, function, test, test, tree.statement(node)
        ):
            yield test, holds


def _excluded(held: list[tuple[ast.expr, bool]], asked: ast.expr) -> bool:
    """Tell whether something cannot hold where some tests come out as they do."""
    known = NOTHING
    for test, holds in held:
        known = refine(known, test, holds) or known
    if evaluate(asked, known) is False:
        return True
    then = refine(NOTHING, asked, True)
    return then is None or any(evaluate(test, then) is (not holds) for test, holds in held)


def _made(unit: Unit, site: Site) -> Creation:
    """Return when an initialize scales, as far as the tests around it and its arguments say so."""
    tree, options = site.module.tree, unit.options[site]
    around = [
        guard(unit, site, up, holds)
        for up, holds in tree.sides(site.node)
        if isinstance(up, ast.If)
    ]
    around = [condition for condition in around if condition != UNKNOWN]
    own = options.switch if options.always_scales else options.casts
    known: list[Condition] = [*around, *([own] if own != UNKNOWN else [])]
    scales = conjunction(known)
    return Creation(site, site.statement, scales, scales)
