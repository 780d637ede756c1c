"""Functions that only clip, and leave it to their callers to unscale."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import Kind
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.steps.indirect import indirect
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import program_of


def clip_helpers(unit: Unit) -> set[Function]:
    """Return the functions that only clip, and what calls them in between: `unscale_` stands before the calls of those that step, or run the backward."""
    found = set[Function]()
    for function in {site.function for site in unit.of(Kind.MASTER_PARAMS)} - unit.training:
        between = set[Function]()
        if _only_clips(unit, function, between):
            found |= between
    return found


def _only_clips(unit: Unit, function: Function, between: set[Function]) -> bool:
    """Tell whether a function takes no step, and runs for functions alone that do, or run a backward; `between` gets those on the way."""
    running = runs(unit, function)
    if not running or indirect(unit, function) or _escapes(unit, function):
        return False
    between.add(function)
    return all(
        caller in between
        or bool(unit.steps_of(caller) or unit.backwards_of(caller) or indirect(unit, caller))
        or (caller not in unit.training and _only_clips(unit, caller, between))
        for caller in {caller for caller, _ in running}
    )


def runs(unit: Unit, function: Function) -> list[tuple[Function, ast.AST]]:
    """Return the calls of a function, or the reads of a property, each with the function that it stands in."""
    if function.is_property:
        return program_of(unit.project).calls.reads(function) or []
    return [(call.function, call.call) for call in unit.project.calls_of(function)]


def _escapes(unit: Unit, function: Function) -> bool:
    """Tell whether code out of sight may run a function, or read a property."""
    if not function.is_property:
        return bool(unit.project.escapes(function))
    return bool(unit.project.unseen.of(function, called=True))
