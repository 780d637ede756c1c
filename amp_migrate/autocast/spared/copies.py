"""Copies of networks that Apex was given: O2 and O3 left those from before in fp32, and bound later ones to the weights they are of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from amp_migrate.autocast.evaluated.inference import may_run_before_apex, runs_before_apex
from amp_migrate.facts.below import every
from amp_migrate.placement.finding.networks import initialized
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module
from amp_migrate.training.forwards.holders import copied_by
from amp_migrate.training.region import Part, calls_of, run_by


class Copied(NamedTuple):
    """A call that copies a network; whether that is `before` Apex is initialized, None where it may be."""

    function: Function
    call: ast.Call
    before: bool | None


def copied(unit: Unit, parts: list[Part]) -> Iterator[Copied]:
    """Yield the copies of initialized networks that some parts run, but for those that are initialized themselves."""
    groups = unit.project.values.groups
    networks = initialized(unit)
    given = {group for module, node in unit.models() for group in groups(module, node)}
    run: set[int] | None = None
    for module, call in unit.calls():
        made_of = copied_by(unit.project, module, call)
        if not any(groups(origin, node) & networks for origin, node in made_of):
            continue
        if groups(module, call) & given:
            continue
        run = run if run is not None else _run(unit, parts)
        if groups(module, call) & run:
            function = unit.project.function_of(module, call)
            yield Copied(function, call, _is_before(unit, function, call))


def _run(unit: Unit, parts: list[Part]) -> set[int]:
    """Return the names of what parts call, by itself or by a method."""
    groups = unit.project.values.groups
    return {group for module, func in _called(unit, parts) for group in groups(module, func)}


def _called(unit: Unit, parts: list[Part]) -> Iterator[tuple[Module, ast.expr]]:
    nodes = [(f.module, n) for f, part in parts for n in every(part) if isinstance(n, ast.Call)]
    nodes += [(f.module, c) for f in run_by(unit.project, calls_of(parts)) for c in f.calls]
    for module, call in nodes:
        yield module, call.func
        if isinstance(call.func, ast.Attribute):
            yield module, call.func.value


def _is_before(unit: Unit, function: Function, call: ast.Call) -> bool | None:
    if runs_before_apex(unit, function, call):
        return True
    return None if may_run_before_apex(unit, function, call) else False
