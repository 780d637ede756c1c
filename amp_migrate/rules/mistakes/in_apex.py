"""The fixes alone: mistakes are corrected in a program that stays with Apex."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from amp_migrate.placement.unscaling import clipping
from amp_migrate.plan.model import Decision, Finding, Status
from amp_migrate.rules import modules
from amp_migrate.rules.base import Context

FAMILY = "AMP2"


def fixes(context: Context) -> Iterator[Decision]:
    """Yield what the fix rules decide about a unit, with edits that keep Apex.

    Branches that collapse natively both stay here, so both are corrected. Raises `Cannot` where a fix has no
    form in Apex.
    """
    unit = context.unit
    unit.gone = set()
    functions = dict.fromkeys(unscale.function for unscale in context.unscales)
    context.unscales = [u for f in functions for u in clipping.plan(unit, f)]
    found = [module for module in modules() if module.RULE.family == FAMILY]
    for module in sorted(found, key=lambda m: (m.RULE.order, m.RULE.code)):
        yield from getattr(module, "decide_in_apex", module.decide)(context)


def unexamined(cause: Finding) -> Decision:
    """Return the finding about a unit in which mistakes cannot be told from intent."""
    message = f"this Apex code was not examined for mistakes: {cause.message}"
    return Decision(replace(cause, status=Status.LEFT, message=message))
