"""Works out everything that the rules ask about a unit, in the order in which one fact needs another."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import partial

from amp_migrate.apex.sites import HANDED_ON, Kind, Site
from amp_migrate.apex.strangers import refuse_reached
from amp_migrate.autocast import regions
from amp_migrate.autocast.bce import all_kept_out
from amp_migrate.autocast.casts import Casts
from amp_migrate.autocast.disabled import Disabled
from amp_migrate.autocast.evaluated.evaluation import evaluations
from amp_migrate.dual.branches import Branches
from amp_migrate.facts.below import every
from amp_migrate.facts.constants import is_none
from amp_migrate.placement.backwards import scaled
from amp_migrate.placement.backwards.aside import refuse_aside
from amp_migrate.placement.backwards.beside import keep_spent, refuse_mixed
from amp_migrate.placement.backwards.probes import set_apart
from amp_migrate.placement.finding.build import Index, make
from amp_migrate.placement.finding.gather import gather
from amp_migrate.placement.finding.internals import (
    initial_scale,
    initial_setting,
    refuse_asked,
    refuse_moved_by_hand,
    refuse_other_parts,
    refuse_ritual,
    spelt_setting,
)
from amp_migrate.placement.finding.overflow import asks, refuse_unlike
from amp_migrate.placement.finding.trains import Trains
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.carrying import carry
from amp_migrate.placement.making.creation import Creation, creations
from amp_migrate.placement.making.off import trains_apart
from amp_migrate.placement.steps.early import is_early
from amp_migrate.placement.steps.passing import behind_tests
from amp_migrate.placement.steps.shared import shared
from amp_migrate.placement.steps.unstepped import refuse_unstepped
from amp_migrate.placement.unscaling import clipping
from amp_migrate.placement.unscaling.clip_check import refuse_helpers, refuse_scaled, refuse_unseen
from amp_migrate.placement.unscaling.helpers import clip_helpers, runs
from amp_migrate.placement.unscaling.unscale import Unscale
from amp_migrate.placement.windows.separate import (
    left_scaled,
    refuse_separate_windows,
    refuse_waiting_beside,
)
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Function, Module
from amp_migrate.project.reach import upwards
from amp_migrate.rules.autocast.programs import NOBODY, Near
from amp_migrate.rules.base import Context
from amp_migrate.rules.mistakes.amp205_scale_loss_of_model import is_misplaced
from amp_migrate.rules.refused import (
    refuse_handed,
    refuse_scattered,
    refuse_unknown,
    refuse_wrappers,
)
from amp_migrate.scaler.naming import free_name
from amp_migrate.scaler.reach.kept import only_saved
from amp_migrate.scaler.routes import either
from amp_migrate.scaler.spelling import Spelling
from amp_migrate.settings import Settings
from amp_migrate.training.bindings import is_generator
from amp_migrate.training.steps import Backward, Step


def prepare(
    index: Index,
    found: list[Site],
    settings: Settings,
    spelling: Spelling,
    module_level: bool = False,
    near: Near = NOBODY,
) -> Context:
    """Return the context of one unit, with its scaler as a variable of its file where `module_level`.

    `near` are the programs that share code with it. Raises `Cannot` where the unit has to be left.
    """
    unit = make(index, found, module_level)
    unit.plain = settings.enables
    beside = unit.home.beside
    beside.leaving, beside.alike, beside.kept = near
    _refuse_sites(index, unit)
    misplaced = [site for site in unit.of(Kind.SCALE_LOSS) if is_misplaced(site)]
    unit.sites = [site for site in unit.sites if site not in misplaced]
    blocks = {site: scaled.read(unit.project, site) for site in unit.of(Kind.SCALE_LOSS)}
    gather(unit, blocks)
    unit.home.name = free_name(_passed(unit))
    branches = Branches(unit, blocks)
    unit.gone, unit.folded = _gone(branches), branches.folded()
    refuse_asked(unit)
    set_apart(unit)
    refuse_mixed(unit)
    keep_spent(unit)
    unit.trains = Trains(unit)
    refuse_unstepped(unit)
    refuse_separate_windows(unit)
    refuse_waiting_beside(unit)
    unscales = _unscales(unit, settings)
    refuse_unlike(unit, blocks)
    unit.regions, inlines, names = regions.training(unit, blocks.values())
    inlines = [i for i in inlines if i.function.module.path not in beside.leaving]
    unit.inlined = [(inline.function, inline.value) for inline in inlines]
    trained = (r for r in unit.regions if r.module.path not in beside.leaving)
    unit.regions = [r for r in trained if r.function not in beside.without]
    unit.regions, entropies = all_kept_out(unit)
    spelling = replace(spelling, remembers=asks(unit))
    if not spelling.remembers and not _offers_plain_steps(unit):
        unit.home.beside.off = spelling.scaler(["enabled=False"])
        disabled = Disabled(unit)
        unit.home.beside.uncast = disabled.uncast()
        unit.home.beside.borrowing = disabled.shared(unit.home.beside.uncast)
    _reach(unit)
    carry(unit, index)
    for function in unit.home.carriers.parameters:
        either.reach(unit.home, function)
    unit.home.returning.prepare()
    made = _together(unit, _creations(unit))
    refuse_aside(unit, list(made.values()))
    context = Context(unit, settings, spelling, blocks, branches, Casts(unit, list(made.values())))
    trains = {site for sites in unit.home.inits.values() for site in sites}
    context.creations = {
        site: creation for site, creation in made.items() if site in trains and unit.scales
    }
    context.misplaced = misplaced
    context.unscales = unscales
    context.shared = behind_tests(unit, shared(unit), unscales)
    context.inlines = inlines
    context.entropies = entropies
    context.hoisted_losses = names
    return context


def _refuse_sites(index: Index, unit: Unit) -> None:
    """Refuse what is known from the uses of Apex alone."""
    refuse_unknown(unit)
    refuse_moved_by_hand(unit)
    refuse_other_parts(unit)
    refuse_ritual(unit)
    refuse_wrappers(unit)
    refuse_handed(unit)
    refuse_reached(index.project, index.strangers, unit.sites)
    refuse_scattered(unit)


def _unscales(unit: Unit, settings: Settings) -> list[Unscale]:
    """Return where gradients are unscaled, in every function that trains."""
    moving = settings.enabled("AMP208")
    unit.clip_helpers = clip_helpers(unit)
    unscales = [
        unscale
        for function in _training_functions(unit)
        if not trains_apart(unit, function)
        for unscale in clipping.plan(unit, function, moving=moving)
    ]
    unscales = left_scaled(unit, unscales, native=not settings.only_fixes)
    refuse_scaled(unit, unscales)
    refuse_helpers(unit, unscales)
    refuse_unseen(unit, unscales)
    return unscales


def _offers_plain_steps(unit: Unit) -> bool:
    """Tell whether code trains by functions of its own where AMP is off: whoever calls it for those has no scaler."""
    scaled = {b.function for b in unit.backwards if b.scaled}
    return any(b.function not in scaled for b in unit.backwards)


def _passed(unit: Unit) -> list[Module]:
    """Return the files of a unit and those of the functions through which its scaler may be handed on."""
    callers = {f.module for function in unit.functions for f in upwards(unit.project, function)}
    return sorted(callers, key=lambda module: module.path)


def _training_functions(unit: Unit) -> list[Function]:
    items: list[Step | Backward | Site] = [
        *unit.steps,
        *unit.backwards,
        *unit.of(Kind.MASTER_PARAMS),
    ]
    trains = {b.function for b in unit.backwards}
    stepping = [s.function for s in unit.steps]
    helpers = [
        *unit.clip_helpers,
        *(f for f in stepping if f not in trains or is_generator(f)),
    ]
    callers = [caller for helper in helpers for caller, _ in runs(unit, helper)]
    return list(dict.fromkeys([*(item.function for item in items), *callers]))


def _gone(branches: Branches) -> set[ast.AST]:
    statements = [s for c in branches.collapses.values() for s in c.gone()]
    statements += [s for p in branches.prefixes.values() for s in p.node.orelse]
    return {node for stmt in statements for node in every(stmt)}


def _reach(unit: Unit) -> None:
    """Make sure that every place that needs the scaler can have it."""
    access = unit.home.access
    steps = unit.live_steps()
    for step in steps:
        if step.function.cls is not None:
            access(step.function, step.call)
    for backward in unit.live_backwards():
        access(backward.function, backward.node)
    for step in steps:
        if not is_early(unit, step):
            access(step.function, step.call)
    for node, function in (*unit.scaled_reads.items(), *unit.scaled_clips.items()):
        access(function, node)
    _reach_carriers(unit)
    for function in unit.home.carriers.parameters:
        _reach_callers(unit, function)
    for site in unit.of(Kind.STATE_DICT, Kind.LOAD_STATE_DICT, Kind.LOSS_SCALE):
        if site.node not in unit.gone and not (
            site.kind is Kind.LOSS_SCALE
            and (initial_scale(unit, site) or initial_setting(unit, site))
        ):
            access(site.function, site.node)


def _reach_carriers(unit: Unit) -> None:
    """Make sure that the scaler can go where amp was stored, or passed to a call."""
    carriers, access = unit.home.carriers, unit.home.access
    for stored in carriers.stored:
        if unit.home.inits.get(stored.site.function) is None:
            access(stored.site.function, stored.statement)
    for entry in carriers.entries:
        access(entry.site.function, entry.site.node)
    for passed in carriers.passed:
        if not carriers.receives(passed):
            site = passed.site
            kept = unit.project.callees(passed.call) or only_saved(
                unit.project, site.module, site.node
            )
            if not kept or passed.is_function:
                raise Cannot("AMP909", *site.at, *passed.unfollowed)
            access(passed.site.function, passed.call)


def _reach_callers(unit: Unit, function: Function) -> None:
    """Make sure that whoever passes amp to a function can pass the scaler."""
    for call, giver, given in unit.home.carriers.calls(function):
        if given is None or is_none(given):
            continue
        if unit.project.external(giver.module, given) not in HANDED_ON:
            raise Cannot(
                "AMP909",
                *call.function.at(call.call),
                f"whether this call passes amp or something else to {function.qualname}() is not known",
                f"import amp where {function.qualname}() uses it instead of passing it on, then run again",
            )
        unit.home.access(giver, call.call if giver is call.function else given)


def _together(unit: Unit, made: dict[Site, Creation]) -> dict[Site, Creation]:
    """Let the GradScaler tell whether casts are on, where a forward cannot see what decides that."""
    apart = [c for c in made.values() if c.scales != c.casts and c.casts.value is None]
    ones = [c for c in made.values() if not unit.options[c.site].scaling and c.casts.value is None]
    if not apart and not ones:
        return made
    functions = [region.function for region in [*unit.regions, *evaluations(unit)]]
    if Casts(unit, list(made.values())).repeatable(functions):
        return made
    for creation in ones:
        unit.options[creation.site].keep_scale(1.0)
    for creation in apart:
        unit.options[creation.site].remarks.append(
            "at O0 the GradScaler is off, although Apex honoured the given loss_scale there too"
        )
    return {site: replace(c, scales=c.casts) if c in apart else c for site, c in made.items()}


def _creations(unit: Unit) -> dict[Site, Creation]:
    result: dict[Site, Creation] = {}
    by_function: dict[object, list[Site]] = {}
    for site in unit.of(Kind.INITIALIZE):
        scale = next(
            (initial_scale(unit, s) for s in unit.of(Kind.LOSS_SCALE) if initial_scale(unit, s)),
            None,
        )
        if scale is not None:
            unit.options[site].init_scale = scale
        for other in unit.of(Kind.LOSS_SCALE):
            setting = initial_setting(unit, other)
            if setting is not None:
                spell = partial(spelt_setting, unit.project, other.module, setting[0])
                unit.options[site].tune(*setting, spell)
        by_function.setdefault(site.function, []).append(site)
    for found in by_function.values():
        for creation in creations(unit, found[0].function, found):
            result[creation.site] = creation
    return result
