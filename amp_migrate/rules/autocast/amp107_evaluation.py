"""Evaluation forwards run under autocast too.

## What it does
Puts the forward pass of a migrated model that runs without gradients (`torch.no_grad()`, `.eval()`) under
autocast, with the loss that follows it and what squares its outputs or takes their norm. A `with torch.no_grad():`
that holds nothing else gets autocast as a second item.

What leaves a block in fp16 and was fp32 under Apex becomes so by `.float()`, where it surely has a floating type and no
backward comes of it: copies to the CPU, what O2 and O3 gave out, and of O1 deviations, variances and what stands beside an
fp32 tensor without dimensions. A note names the copies of which that is not known. Where the program chooses O2 or O3, so
becomes what losses are computed of in fp16 otherwise: a mean, a sigmoid, a difference of outputs.

## Why
O1 cast evaluation as well. Left in fp32, evaluation needs twice the memory and its metrics differ slightly. Scores that are
averaged, ranked or kept in fp16 have fewer than 11 bits.

## Example
    with torch.no_grad():
        output = model(images)

## Use instead
    with torch.no_grad(), torch.cuda.amp.autocast():
        output = model(images)

## Safety
Faithful. Where neither the flag nor the scaler can be seen, the forward stays in fp32 and a finding says so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from amp_migrate.apex.apart import elements
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.autocast.disabled import Disabled
from amp_migrate.autocast.evaluated.evaluation import runs_in
from amp_migrate.autocast.evaluated.others import others, trains_aside
from amp_migrate.autocast.regions import within
from amp_migrate.autocast.reloads import loads
from amp_migrate.autocast.slicing.finished import fp32_inputs
from amp_migrate.availability.dead import is_dead_local
from amp_migrate.placement.finding.forgotten import is_described
from amp_migrate.plan.cannot import Cannot, place_of, spoken
from amp_migrate.plan.model import (
    AddWithItem,
    Decision,
    Edit,
    Finding,
    Status,
    Wrap,
)
from amp_migrate.project import Function
from amp_migrate.rules.autocast.evaluation_places import cast_at, joined
from amp_migrate.rules.autocast.leaving import leaving, returning
from amp_migrate.rules.autocast.programs import (
    is_come_to,
    keeps_apex,
    only_in_forwards,
    serves_others,
)
from amp_migrate.rules.autocast.suspended import suspended
from amp_migrate.rules.autocast.ungiven import cast_now, ran_in_fp32, was_not_cast
from amp_migrate.rules.autocast.unseen import recorded, unseen
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.rules.casts.amp123_left_in_fp32 import RULE as LEFT_IN_FP32
from amp_migrate.rules.casts.compared import made_fp16
from amp_migrate.source.span import Span
from amp_migrate.training.contexts import runs_without_gradients
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.region import Part, Region, calls_in, parts_of, run_in
from amp_migrate.words import plural

RULE = Rule("AMP107", "evaluation forwards run under autocast", Safety.FAITHFUL)


def decide(context: Context) -> Iterator[Decision]:
    """Wrap the evaluation forwards of the unit's models."""
    if context.casts.never:
        return
    disabled = Disabled(context.unit)
    asked = [r for r in context.evaluations() if not disabled.holds(r)]
    places = cast_at(context, asked, disabled)
    regions = [r for r in places.regions if not disabled.holds(r) and _ran_under_apex(context, r)]
    kept = [r for r in regions if keeps_apex(context.unit, r.function)]
    aside = [
        region for region in others(context.unit, regions) if context.casts.runs(region.function)
    ]
    apart = cast_at(context, aside, disabled)
    shared = [r for r in apart.regions if r in aside and serves_others(context.unit, r.function)]
    shared += kept
    regions = [r for r in regions if r not in kept]
    asked_for = [*regions, *(r for r in apart.regions if r not in shared)]
    regions = joined(context, [r for r in asked_for if not ran_in_fp32(context, r)])
    decisions = [
        (region, _evaluation(context, region))
        for region in regions
        if not _within_forwards(context, region) and not _is_as_before(context, region)
    ]
    trained = (r for r in context.unit.regions if not disabled.holds(r))
    cast = [*trained, *(region for region, made in decisions if made.edits)]
    disabled.refuse(cast)
    inlined = (each for each in context.unit.inlined if not disabled.runs(each[0]))
    parts = [*parts_of(cast), *inlined]
    for site in context.unit.of(Kind.INITIALIZE):
        options = context.unit.options[site]
        trains = elements(options.arguments.get("optimizers")) and not options.idle
        if not trains and not context.is_gone(site.node):
            _refuse_uncast(context, site, parts, asked)
    own = [region for region, made in decisions if made.edits]
    for region, made in decisions:
        if made.edits or not _is_cast_below(context, region, own):
            yield made
    for region in own:
        yield from _without_apex(context, region)
    yield from cast_now(context, LEFT_IN_FP32, own)
    for region in shared:
        if not was_not_cast(context, region):
            yield _left_in_fp32(context, region)
    for region, blind in (*places.blind, *apart.blind):
        if was_not_cast(context, region):
            continue
        callers = [spoken(function) for function in blind if not is_dead_local(function)]
        if callers:
            yield _left_in_fp32(context, region, callers)
    yield from leaving(context, RULE, cast)
    yield from returning(context, RULE, own)
    for function, call, name in recorded(context, cast):
        message = f"{name}() records the network in fp32 now; Apex had its casts recorded"
        advice = f"to record them, call it under `with {context.spelling.autocast('...', 'cache_enabled=False')}:`"
        yield decision(RULE, Status.NOTE, function.module, call, message, advice=advice)
    for function, call, name in unseen(context, cast):
        message = f"{name}() is not found here: where it runs the network, Apex cast that, and nothing does now"
        advice = f"if it does, call it under `with {context.spelling.autocast('...')}:`"
        yield decision(RULE, Status.NOTE, function.module, call, message, advice=advice)


def _ran_under_apex(context: Context, region: Region) -> bool:
    """Tell whether a program that has Apex can come to a region; nothing changes for any other."""
    function = region.function
    known = context.enabled(region) is not None
    if context.casts.runs(function):
        return known or not is_dead_local(function)
    initializes = any(True for _ in context.unit.of(Kind.INITIALIZE))
    return known and not (initializes and is_come_to(context.unit, function))


def _within_forwards(context: Context, region: Region) -> bool:
    """Tell whether a region is a part of forward passes alone, and is cast where these are."""
    known = context.enabled(region) is not None
    return not known and only_in_forwards(context.unit.project, region.function)


def _is_as_before(context: Context, region: Region) -> bool:
    """Tell whether a region that no block can cast was not cast by Apex either; what measures is told of for its input."""
    if context.enabled(region) is not None or _only_measures(context, region):
        return False
    return was_not_cast(context, region)


def _is_cast_below(context: Context, region: Region, cast: list[Region]) -> bool:
    """Tell whether a region runs no network itself, and what it calls is cast where it does, all of it."""
    unit = context.unit
    direct = any(
        unit.forwards.call(module, call) is Forward.NETWORK and not unit.project.callees(call)
        for module, call in calls_in([region])
    )
    below = run_in(unit.project, [region])
    inside = [other for other in cast if other.function in below]
    left = (r for r in context.evaluations() if r.function in below)
    return bool(inside) and not direct and all(any(within(r, o) for o in inside) for r in left)


def _refuse_uncast(context: Context, site: Site, cast: list[Part], seen: list[Region]) -> None:
    """An initialize that only casts must not vanish where no forward of its model gets autocast; `seen` are all evaluations."""
    if not runs_in(context.unit, site, cast):
        model = site.module.tree.segment(context.unit.options[site].arguments["models"])
        message = f"no forward pass of `{model}` is found in the files given that could be put under autocast"
        spelt = context.spelling.autocast()
        for region in (r for r in seen if runs_in(context.unit, site, parts_of([r]))):
            where, spelt = place_of(region.module, region.first), context.spelling.autocast("...")
            message = f"whether AMP is on is decided here, and nothing tells it again where `{model}` runs ({where})"
            break
        raise Cannot(
            "AMP904",
            *site.at,
            message,
            f"delete this call, and put the forward pass of {model} under `with {spelt}:`",
        )


def _evaluation(context: Context, region: Region) -> Decision:
    enabled = context.enabled(region)
    if enabled is None or loads(context.unit, region):
        return _left_in_fp32(context, region)
    call = context.spelling.autocast(enabled)
    edits = suspended(context, region, call)
    if edits is None:
        edits = [_block(context, region, call)]
    message = f"evaluation forward under `{call}`"
    own = any(is_described(site) for site in context.unit.of(Kind.INITIALIZE))
    if trains_aside(context.unit, region) and not own:
        message = f"the forward of what trains here without amp.scale_loss is under `{call}`: Apex went on with the fp16 copies of its first weights, which only amp.scale_loss renewed"
        return decision(RULE, Status.NOTE, region.module, region.first, message, edits)
    return decision(RULE, Status.ROUTINE, region.module, region.first, message, edits)


def _block(context: Context, region: Region, call: str) -> Edit:
    """Return the edit that puts a region under autocast: as one more item of the block without gradients that is all of it."""
    tree = region.module.tree
    holder = tree.holder(region.first)
    if (
        isinstance(holder, ast.With)
        and len(region.statements()) == len(holder.body)
        and runs_without_gradients(context.unit.project, region.module, holder)
    ):
        return AddWithItem(tree.span(holder), call)
    return Wrap(tree.span(region.first), tree.span(region.last), f"with {call}:")


def _without_apex(context: Context, region: Region) -> Iterator[Decision]:
    """Say of a cast evaluation that runs come to it which never initialize, where no condition tells them apart."""
    casts = context.patched(region) or context.casts
    for guard in casts.untold(region.function, region.first):
        test = guard.function.module.tree.segment(guard.test.test)
        message = f"this evaluation is cast in runs that leave out what `{test}` guards, too, in which Apex was never on"
        advice = "put what says so into a variable that is set once, and test that"
        path = region.module.path
        yield Decision(Finding(path, _span(region), RULE.code, Status.NOTE, message, advice), [])


def _span(region: Region) -> Span:
    """Return where a region stands, all of it."""
    tree = region.module.tree
    return tree.span(region.first).until(tree.span(region.last))


def _only_measures(context: Context, region: Region) -> bool:
    """Tell whether a region runs no network, and computes what autocast and Apex compute in fp32, such as a softmax."""
    unit, module = context.unit, region.module
    nodes = [node for stmt in region.statements() for node in ast.walk(stmt)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if any(unit.forwards.call(module, call) is Forward.NETWORK for call in calls):
        return False
    if any(unit.project.callees(call) for call in calls):
        return False
    return any(fp32_inputs(unit.project, module, stmt) for stmt in region.statements())


_LONGEST = 60


def _is_of_syntax(function: Function) -> bool:
    """Tell whether Python itself calls a method, as `__iter__` of what a loop goes over."""
    name = function.name
    special = name.startswith("__") and name.endswith("__")
    return function.cls is not None and special and name not in ("__init__", "__new__", "__call__")


def _left_in_fp32(context: Context, region: Region, callers: Sequence[str] = ()) -> Decision:
    """Say that an evaluation is no longer cast: at all, or where some callers run it that cannot say whether AMP is on."""
    who = spoken(region.function)
    flag = context.casts.condition.text
    on = f"`{flag}`" if 0 < len(flag) <= _LONGEST else "the flag of AMP"
    cast = f"under `with {context.spelling.autocast('...')}:` with {on}"
    advice = f"put it {cast} to run it as before"
    if region.function.node is not None:
        advice = f"pass {on} on to {who}, and {advice}"
    ran = "runs in fp32 now and ran in fp16 under Apex"
    if _only_measures(context, region):
        ran = "computes in the type of its input now and computed in fp32 under Apex"
    message = f"this evaluation {ran}: it is not clear in {who} whether AMP is on"
    if loads(context.unit, region):
        message = f"this evaluation {ran}: its statement loads weights, of which a block would keep the copies from before"
        advice = f"put what it loads into a variable first, and that {cast}"
    elif callers:
        more = f" and {plural(len(callers) - 1, 'other function')}" if len(callers) > 1 else ""
        message = f"run by {callers[0]}{more}, this evaluation {ran}: it is not clear there whether AMP is on"
        advice = f"put the call there {cast} to run it as before"
    elif _is_of_syntax(region.function):
        message = f"a loop, an index or the like runs {who}, and outside of autocast this evaluation {ran}"
        advice = f"put what uses its object {cast}"
    elif not is_come_to(context.unit, region.function):
        message = "nothing in the files given runs this function: its forward pass is cast only where what calls it is under autocast"
        advice = f"where it is not, put the call {cast}"
    elif (site := keeps_apex(context.unit, region.function)) is not None:
        kept = PurePath(site.module.path).name
        message = f"this evaluation {ran}: {kept} keeps Apex and runs {who} as well, where a block would change what Apex does"
        advice = f"migrate {kept} too, or put the calls of {who} {cast} in the other programs"
    path = region.module.path
    if halved := made_fp16(context, region):
        message += f"; `{halved}` is fp16 there, for which layers in fp32 raise an error"
    return Decision(Finding(path, _span(region), RULE.code, Status.NOTE, message, advice), [])
