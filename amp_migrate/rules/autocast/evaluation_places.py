"""Where the casts of evaluations stand: at the forward, or at the calls that lead there and can say whether AMP is on."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from amp_migrate.autocast.disabled import Disabled
from amp_migrate.autocast.evaluated.gathered import gathered
from amp_migrate.autocast.evaluated.inference import (
    before_apex,
    may_run_before_apex,
    runs_before_apex,
)
from amp_migrate.autocast.evaluated.inside import only_inside
from amp_migrate.autocast.regions import merged, within
from amp_migrate.autocast.reloads import reloads, writes
from amp_migrate.project import CallSite, Function, Project
from amp_migrate.project.reach import reached_by
from amp_migrate.protocol.code.program import program_of
from amp_migrate.rules.autocast.programs import keeps_apex, serves_others
from amp_migrate.rules.autocast.ungiven import ran_in_fp32
from amp_migrate.rules.base import Context
from amp_migrate.training.region import Part, Region, nodes_in, parts_of


@dataclass(slots=True)
class Places:
    """The `regions` that are cast, and of evaluations that are cast at some calls only the functions that are `blind` to AMP."""

    regions: list[Region]
    blind: list[tuple[Region, list[Function]]] = field(default_factory=list)


def cast_parts(context: Context, disabled: Disabled, *, given: bool = False) -> list[Part]:
    """Return all that is put under autocast, in trainings and evaluations; if `given`, only what may run a network that Apex was given."""
    asked = [r for r in context.evaluations() if not disabled.holds(r)]
    moved = cast_at(context, asked, disabled).regions
    kept = [r for r in moved if not _is_left(context, r, given)]
    asked = [r for r in asked if not _is_left(context, r, given) or any(within(r, k) for k in kept)]
    regions = [r for r in (*context.unit.regions, *asked, *kept) if not disabled.holds(r)]
    inlined = (each for each in context.unit.inlined if not disabled.runs(each[0]))
    return [*parts_of(regions), *inlined]


def _is_left(context: Context, region: Region, given: bool) -> bool:
    return context.networks.only_others(region) if given else ran_in_fp32(context, region)


@dataclass(slots=True)
class _Ways:
    """The regions on the ways to an evaluation that see whether AMP is on, and the functions where ways begin that do not."""

    seeing: list[Region] = field(default_factory=list)
    blind: list[Function] = field(default_factory=list)


def cast_at(context: Context, evaluations: list[Region], disabled: Disabled) -> Places:
    """Replace the regions that see neither flag nor scaler, or that also run without Apex or its casts, by the calls that lead to them, where those do."""
    found: dict[tuple[str, int], Region] = {}
    partly: list[tuple[Region, list[Function]]] = []
    upwards = _Upwards(context, disabled, context.unit.trained_nodes() | nodes_in(evaluations))
    for region in evaluations:
        ways = upwards.ways(region)
        for chosen in ways.seeing or [region]:
            found.setdefault((chosen.module.path, chosen.first.lineno), chosen)
        if ways.seeing and ways.blind:
            partly.append((region, list(dict.fromkeys(ways.blind))))
    whole = joined(context, found.values())
    held = [*whole, *context.unit.regions]
    return Places(
        [
            r
            for r in whole
            if not any(within(r, other) for other in held if other is not r)
            and not before_apex(context.unit, r)
        ],
        partly,
    )


def joined(context: Context, regions: Iterable[Region]) -> list[Region]:
    """Join neighbours that are cast under one condition."""
    told: dict[tuple[str | None, Function], list[Region]] = {}
    for region in regions:
        told.setdefault((_told(context, region), region.function), []).append(region)
    found = []
    for (text, _), alike in told.items():
        wider = gathered(context.unit, alike) if text is not None else []
        wider = [r for r in wider if _told(context, r) == text]
        apart = [r for r in alike if not any(within(r, other) for other in wider)]
        found += [*wider, *(merged(apart) if text is not None else apart)]
    return found


def _told(context: Context, region: Region) -> str | None:
    return context.enabled(region)


class _Upwards:
    """Follows calls up to where it can be said whether AMP is on; what is asked of a call is asked once.

    A function is not asked that is called inside `cast` nodes alone, where those can say it.
    """

    def __init__(self, context: Context, disabled: Disabled, cast: AbstractSet[ast.AST]) -> None:
        self._context = context
        self._disabled = disabled
        self._cast = cast
        self._seeing: dict[ast.stmt, bool] = {}
        self._calls: dict[Function, list[tuple[CallSite, Region | None]]] = {}

    def ways(self, region: Region) -> _Ways:
        """Return the ways to an evaluation; calls in a circle begin none."""
        found = _Ways()
        self._follow(found, region, region.function, set(), set())
        return found

    def _follow(
        self,
        found: _Ways,
        region: Region | None,
        function: Function,
        around: set[Function],
        followed: set[Function],
    ) -> None:
        if region is not None and not self._is_cast_around(region) and self._sees(region):
            found.seeing.append(region)
            return
        if function in around:
            return
        calls = self._led_by(function)
        if not calls:
            found.blind.append(function)
        if function in followed:
            return
        followed.add(function)
        around.add(function)
        for call, calling in calls:
            self._follow(found, calling, call.function, around, followed)
        around.discard(function)

    def _is_cast_around(self, region: Region, below: frozenset[ast.stmt] = frozenset()) -> bool:
        """Tell whether all calls that lead to a region are cast, and can say whether AMP is on, or what leads to them does."""
        if region.first in below or not only_inside(self._context.unit, region, self._cast):
            return False
        calls = self._led_by(region.function)
        below |= {region.first}
        return bool(calls) and all(
            r is not None and (self._is_cast_around(r, below) or self._sees(r)) for _, r in calls
        )

    def _sees(self, region: Region) -> bool:
        """Tell whether it can be said at a region whether AMP is on."""
        if region.first not in self._seeing:
            self._seeing[region.first] = self._found_seeing(region)
        return self._seeing[region.first]

    def _found_seeing(self, region: Region) -> bool:
        context, function = self._context, region.function
        if self._disabled.runs(function) and not self._disabled.borrows(function):
            return False
        if keeps_apex(context.unit, function) is not None:
            return False
        told = context.told(region)
        if told is None or told.by_scaler:
            return told is not None
        own = function in context.unit.initializing
        casts = context.patched(region) or context.casts
        left_out = not own and bool(casts.untold(function, region.first))
        return not left_out and not _runs_without_apex(context, region)

    def _led_by(self, function: Function) -> list[tuple[CallSite, Region | None]]:
        """Return the calls of a function that run once AMP is on, with the statements that can be cast for them."""
        if function not in self._calls:
            unit = self._context.unit
            self._calls[function] = [
                (call, _calling(self._context, call))
                for call in _running(unit.project, function)
                if self._context.casts.runs(call.function) and call.call not in self._disabled.calls
                if not runs_before_apex(unit, call.function, call.call)
            ]
        return self._calls[function]


def _running(project: Project, function: Function) -> list[CallSite]:
    """Return the calls that run a function, or the network whose `forward` it is; of those that make partial objects of it, the calls of these."""
    sites, partly = project.callers(function), [site for site, _ in project.completions(function)]
    run = program_of(project).calls.sites(function)
    networks = [CallSite(by, node, bound=True) for by, node in run if isinstance(node, ast.Call)]
    return [site for site in sites if not (partly and site.partial)] + partly + networks


def _runs_without_apex(context: Context, region: Region) -> bool:
    """Tell whether a program runs a region that never initializes, or has not yet done so."""
    unit, function = context.unit, region.function
    return serves_others(unit, function) or may_run_before_apex(unit, function, region.first)


def _calling(context: Context, call: CallSite) -> Region | None:
    """Return the statement of a call as a region; None where autocast cannot stand around it.

    So where weights change in the call or beside it, of which autocast would keep the fp16 copies of before.
    """
    module = call.function.module
    stmt = module.tree.statement(call.call)
    if call.partial or not isinstance(
        stmt, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return
    ):
        return None
    if call.call in context.unit.gone or context.unit.trains(module, stmt):
        return None
    unit, trains = context.unit, context.unit.training
    for node in ast.walk(stmt):
        callees = unit.project.callees(node) if isinstance(node, ast.Call) else []
        if trains & reached_by(unit.project, node) or any(reloads(unit, f) for f in callees):
            return None
        if isinstance(node, ast.Call) and writes(unit, module, node):
            return None
    return Region(module, call.function, stmt, stmt)
