"""Clips on micro-batches that do not step: the gradients stay scaled there, and what holds them is scaled as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.gradients import Use
from amp_migrate.project import Function
from amp_migrate.project.reach import reachable, upwards
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.events import Kind
from amp_migrate.training.gradients.magnitude import limit

_Clips = Mapping[ast.Call, Function]


def limited(unit: Unit, function: Function, uses: Iterable[Use]) -> _Clips:
    """Return the clips that reads of a function are, or that their helpers run, where all clip to a limit that can be scaled."""
    found: dict[ast.Call, Function] = {}
    for use in uses:
        call = use.node
        if not isinstance(call, ast.Call):
            return {}
        own = limit(unit.project, function.module, call)
        clips = {call: function} if own is not None else _of_helpers(unit, call)
        if not clips:
            return {}
        found |= clips
    return found


def _of_helpers(unit: Unit, call: ast.Call) -> _Clips:
    """Return the clips that the helpers of a call run, which nothing else calls; none where they read gradients otherwise."""
    project = unit.project
    events = program_of(project).training.of
    below = {f for callee in project.callees(call) for f in reachable(project, callee)}
    found: dict[ast.Call, Function] = {}
    for helper in below:
        for node, held in events(helper).items():
            if any(event.kind is Kind.READ_GRAD for event in held):
                if not isinstance(node, ast.Call) or limit(project, helper.module, node) is None:
                    return {}
                found[node] = helper
    between = below & upwards(project, *found.values())
    sites = [site for helper in between for site in project.callers(helper)]
    alone = all(site.call is call or site.function in between for site in sites)
    return found if alone and not any(map(project.escapes, between)) else {}
