"""Code that only runs where AMP is off: in the other arm of the test around ``amp.initialize``."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.condition import UNKNOWN, Condition, conjunction
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
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
    held = _held(unit, function, node)
    made = [_made(unit, site) for site in unit.of(Kind.INITIALIZE)]
    if held == NOTHING or not made:
        return False
    asked = Asked(unit, made)
    return all(
        creation.scales.text
        and evaluate(ast.parse(creation.scales.text, mode="eval").body, held) is False
        and asked.told(creation.scales.text, function, [creation], training=True)
        for creation in made
    )


def _held(unit: Unit, function: Function, node: ast.AST) -> Assumption:
    """Return what the tests around a node say where it runs; none whose answer may have changed since."""
    tree = function.module.tree
    held = NOTHING
    for up, holds in tree.sides(node):
        test = up.test
        if up not in unit.folded and not rebound(
            unit.project, function, test, test, tree.statement(node)
        ):
            held = refine(held, test, holds) or held
    return held


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
