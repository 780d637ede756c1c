"""Calls outside of training of what training runs deeper down: a method of a network that runs a part of it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from amp_migrate.autocast.evaluated.inference import without_gradients
from amp_migrate.autocast.evaluated.unfed import feeds_nothing
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import all_given, path
from amp_migrate.placement.finding.networks import is_made_anew
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module, Project
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.forwards.classes import is_forward

_Runs = Callable[[Module, ast.Call], bool]


def calls_aside(unit: Unit, runs: _Runs) -> list[tuple[Function, ast.Call]]:
    """Return the calls, in functions that no training runs, of functions that run a network in training too.

    `runs` tells whether a call is one of a network of the unit. The forward of a network is none of these functions:
    the calls of the network are found for themselves.
    """
    trained = unit.trained_below()
    running = [f for f in trained if _helps(f) and _runs_one(f, runs)]

    def callers(function: Function) -> list[Function]:
        above = (site.function for site in unit.project.callers(function))
        return [f for f in above if f in trained and _helps(f)]

    inside = unit.trained_nodes()
    return [
        (function, call)
        for helper in closure(running, callers)
        for function, call in running_one(unit.project, helper)
        if function not in trained
        and call not in inside
        and _evaluates(unit, function.module, call)
    ]


def running_one(project: Project, function: Function) -> list[tuple[Function, ast.Call]]:
    """Return the calls that run a function, those of ``map`` and of partials among them, each with where it stands."""
    sites = [site for site in project.callers(function) if not site.partial]
    sites += [site for site, _ in project.completions(function)]
    called = [(site.function, site.call) for site in sites]
    return called + program_of(project).calls.mapped(function)


def of_others(unit: Unit, module: Module, call: ast.Call, models: set[int]) -> bool:
    """Tell whether a call gives a helper networks, none of which the unit initialized."""
    given = [
        node
        for node in all_given(call)
        if path(node) is not None and unit.forwards.is_network(module, node)
    ]
    groups = [unit.project.values.groups(module, node) for node in given]
    if not any(groups) or any(found & models for found in groups):
        return False
    return not any(is_made_anew(unit, module, node) for node in given)


def _helps(function: Function) -> bool:
    return function.node is not None and not is_forward(function)


def _runs_one(function: Function, runs: _Runs) -> bool:
    return any(runs(function.module, n) for n in function.calls)


def _evaluates(unit: Unit, module: Module, call: ast.Call) -> bool:
    return without_gradients(unit, module, call) or feeds_nothing(unit, module, call)
