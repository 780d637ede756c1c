"""Evaluations that change weights between forward passes, where autocast would go on with the fp16 copies it has."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import tail
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module
from amp_migrate.project.reach import reachable, reached_by
from amp_migrate.project.rounds import may_follow
from amp_migrate.training.beliefs import CHANGES_WEIGHTS
from amp_migrate.training.forwards.forwards import Forward, is_housekeeping
from amp_migrate.training.region import Region, calls_in
from amp_migrate.training.steppers import is_optimizer, is_schedule


def reloads(unit: Unit, function: Function) -> bool:
    """Tell whether a function, or one it calls, changes weights behind a forward pass."""
    return any(
        _reloads(unit, here)
        for here in reachable(unit.project, function)
        if not is_housekeeping(here.name)
    )


def loads(unit: Unit, region: Region) -> bool:
    """Tell whether a statement of a region itself gives a network weights: those of one that it runs or makes, say."""
    return any(writes(unit, module, call) for module, call in calls_in([region]))


def _reloads(unit: Unit, function: Function) -> bool:
    calls = function.calls
    changes = [call for call in calls if _changes(unit, function, call)]
    forwards = [
        call
        for call in (calls if changes else [])
        if not is_housekeeping(tail(call))
        and unit.forwards.call(function.module, call) is Forward.NETWORK
    ]
    return any(
        may_follow(unit.project, function, f, change) for change in changes for f in forwards
    )


def _changes(unit: Unit, function: Function, call: ast.Call) -> bool:
    """Tell whether a call changes weights, itself or in a function of the project."""
    run = reached_by(unit.project, call)
    inner = [(f.module, n) for f in run for n in f.calls]
    return any(writes(unit, m, n) for m, n in [(function.module, call), *inner])


def writes(unit: Unit, module: Module, call: ast.Call) -> bool:
    """Tell whether a call gives the object that it is a method of other weights."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in CHANGES_WEIGHTS:
        return False
    holder = call.func.value
    return not any(tells(unit.project, module, holder) for tells in (is_optimizer, is_schedule))
