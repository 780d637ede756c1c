"""`optimizer.step()` goes through the GradScaler, and `update()` follows the last step.

## What it does
Writes `scaler.step(optimizer)` for every step of an optimizer that Apex knew, wherever it stands, and one
`scaler.update()` after the last step of an iteration.

## Why
Natively gradients stay scaled until the step. A step that is not rewritten trains on gradients 65536 times
too large, which Adam hides. `update()` between two steps fed by one backward halves or doubles gradients.

## Example
    optimizer.step()

## Use instead
    scaler.step(optimizer)
    scaler.update()

## Safety
Faithful. With several optimizers in one `scale_loss`, Apex skipped all of them on an overflow and
GradScaler skips only the one that overflowed; that is said in a finding. Where that matters, as one loss trains
networks that depend on each other, this decides once for all of them, as Apex did:

    optimizers = [encoder_optimizer, head_optimizer]
    for optimizer in optimizers:
        scaler.unscale_(optimizer)
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    gradients = [p.grad for group in groups for p in group["params"] if p.grad is not None]
    if all(torch.isfinite(gradient).all() for gradient in gradients):
        for optimizer in optimizers:
            scaler.step(optimizer)
    scaler.update()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import all_given, path
from amp_migrate.placement.reads.held import spent
from amp_migrate.placement.steps.early import is_early
from amp_migrate.placement.steps.leaving import exits
from amp_migrate.placement.steps.passing import anchored, unscaling
from amp_migrate.placement.steps.stepping import (
    is_given_none,
    name_for_result,
    refuse_within,
    returned,
)
from amp_migrate.placement.steps.untrained import (
    are_several,
    frozen_at_times,
    never_unscaled,
    skipped_backward,
)
from amp_migrate.placement.steps.updates import halved_once, updates
from amp_migrate.placement.steps.wrapped import wrapping
from amp_migrate.placement.unscaling.unscale import Unscale
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, Drop, Edit, Insert, Replace, ReplaceExpression, Status
from amp_migrate.project import Function
from amp_migrate.project.order import key
from amp_migrate.project.rounds import runs_before
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.rules.calls.scaler_made import loses_bounds
from amp_migrate.training.steps import Backward, Step

RULE = Rule(
    "AMP105",
    "optimizer.step() becomes scaler.step(optimizer) and scaler.update()",
    Safety.FAITHFUL,
    order=30,
)
_SKIPPED = (
    "a step is left out here: under Apex an overflow in these gradients skipped the next step as well, now it "
    "does not"
)
_ONCE = "Apex halved the loss scale behind each of these losses that overflowed; one update() behind all of them halves it once"
_WOKE = "delete it if it was there to wake up Apex only"
_WRAPPED = "this steps what holds the optimizer of amp.scale_loss: Apex skipped the step inside it alone, GradScaler skips all of it"


def decide(context: Context) -> Iterator[Decision]:
    """Rewrite the steps of every function of the unit."""
    calls = context.shared.calls
    unnamed = list(never_unscaled(context.unit, context.scaled.values()))
    functions = dict.fromkeys([*(step.function for step in context.unit.steps), *calls])
    for function in functions:
        steps = [s for s in context.unit.steps_of(function) if not context.is_gone(s.call)]
        backwards = [b for b in context.unit.backwards_of(function) if not context.is_gone(b.node)]
        early = [s for s in steps if is_early(context.unit, s)]
        for step in early:
            yield _workaround(step)
        steps = [s for s in steps if s not in early]
        updated = function not in context.shared.functions
        for step in steps:
            refuse_within(step)
            careful = step in unnamed and not backwards
            yield _step(context, step, careful=careful, kept=updated and returned(step) is not None)
        yield from _held(context, steps)
        behind = anchored(context.unit, steps, context.unscales)
        together = [*behind, *calls.get(function, ())]
        together.sort(key=lambda step: key(step.call))
        if together and updated:
            yield from _updates(context, together, backwards)
        if steps:
            yield from _untrained(context, steps, backwards)
    for unscale in context.unscales:
        if unscale.cleared is not None:
            yield _update(context, unscale.function, unscale.cleared)
        elif unscale.through is not None and unscale.function not in functions:
            yield from _past(context, unscale, unscale.through)
    yield from _differing(context)
    yield from _joint(context)


def _updates(context: Context, steps: list[Step], backwards: list[Backward]) -> Iterator[Decision]:
    """Write `update()` behind the steps of one function, and where it is left before that."""
    function = steps[0].function
    places = updates(context.unit.project, steps, backwards)
    calls = {step.call for step in steps}
    own_steps = [s for s in context.unit.steps_of(function) if s.call in calls]
    returns = [r for step in own_steps if (r := returned(step)) is not None]
    for place in dict.fromkeys([*places, *returns]):
        if isinstance(place, ast.Return):
            if place not in returns:
                raise _returns_helper(steps[0], place)
            yield _returned(context, own_steps, place)
        else:
            yield _update(context, function, place)
    for backward in halved_once(context.unit.project, backwards, places):
        yield decision(RULE, Status.NOTE, backward.module, backward.node, _ONCE)
    own = [u for u in context.unscales if u.function is function]
    unscaled = [u.before for u in own if u.cleared is None and u.behind is None]
    unscaled += map(
        function.module.tree.statement, unscaling(context.unit, function, context.unscales)
    )
    if any(u.decided is not None and u.decided.function is function for u in context.unscales):
        unscaled.append(function.scope.body[0])
    for jump in exits(context.unit.project, function, [s.anchor for s in steps], unscaled, places):
        if not context.is_gone(jump):
            yield _update(context, function, jump, leaving=True)
            if not any(runs_before(context.unit.project, function, s.anchor, jump) for s in steps):
                yield decision(RULE, Status.NOTE, function.module, jump, _SKIPPED)


def _past(context: Context, unscale: Unscale, step: Step) -> Iterator[Decision]:
    """Write `update()` where an iteration is left behind an `unscale_`, and before the call of the helper that steps."""
    function = unscale.function
    for jump in exits(context.unit.project, function, [], [unscale.before], [step.anchor]):
        if not context.is_gone(jump):
            yield _update(context, function, jump, leaving=True)
            yield decision(RULE, Status.NOTE, function.module, jump, _SKIPPED)


def _workaround(step: Step) -> Decision:
    message = f"{step.text}.step() before the first backward finds no gradients and stays as it is"
    return decision(RULE, Status.NOTE, step.module, step.call, message, advice=_WOKE)


def _returns_helper(step: Step, place: ast.Return) -> Cannot:
    return Cannot(
        "AMP905",
        step.module,
        place,
        "this returns what a function gives that steps, and scaler.update() has to come between the two",
        "give the result a name, and return that in a statement of its own, then run again",
    )


def _step(context: Context, step: Step, *, careful: bool, kept: bool) -> Decision:
    """Step through the scaler; `careful` where no gradient may be there, which GradScaler.step takes for a mistake.

    What returns the result is rewritten as a whole where that is `kept` for the update.
    """
    handed_on = is_given_none(context.unit.project, step)
    if (step.call.args or step.call.keywords) and not handed_on:
        given_one = all_given(step.call)[0]
        name = path(given_one)
        called = f"call {name}()" if name else "run what the closure does"
        raise Cannot(
            "AMP906",
            *step.at,
            f"{step.text}.step() is given a closure, which GradScaler does not support",
            f"{called} before the step and write {step.text}.step(), then run again; an optimizer that has to call it "
            "several times, as LBFGS, cannot train with AMP",
        )
    text = _through(context, step)
    edit: Edit = ReplaceExpression(step.tree.span(step.call), text)
    statement = step.tree.statement(step.call)
    if careful and isinstance(statement, ast.Expr):
        groups = f"{step.tree.segment(step.optimizer)}.param_groups"
        test = f'any(p.grad is not None for group in {groups} for p in group["params"])'
        edit = Replace(step.tree.span(statement), f"if {test}:\n    {text}")
    message, edits = f"becomes `{text}`", [] if kept else [edit]
    return decision(RULE, Status.ROUTINE, step.module, step.call, message, edits)


def _held(context: Context, steps: list[Step]) -> Iterator[Decision]:
    """Take away the variables that hold the methods of these steps alone."""
    for statement in spent(context.unit, steps):
        module, span = steps[0].module, steps[0].tree.span(statement)
        message = "goes, as the steps name their optimizer"
        yield decision(RULE, Status.ROUTINE, module, statement, message, [Drop(span)])


def _through(context: Context, step: Step) -> str:
    """Return the call that steps through the scaler."""
    scaler = context.scaler(step.function, step.call)
    handed_on = is_given_none(context.unit.project, step)
    given = [step.optimizer, *(step.call.args if handed_on else ())]
    return f"{scaler}.step({', '.join(map(step.tree.segment, given))})"


def _returned(context: Context, steps: list[Step], place: ast.Return) -> Decision:
    """Keep what is returned over the update."""
    own = [s for s in steps if returned(s) is place]
    if place.value is None or not own:
        raise ValueError("no step is returned here")
    tree, function = own[0].tree, own[0].function
    texts: dict[ast.expr, str] = {s.call: _through(context, s) for s in own}
    name = name_for_result(function)
    lines = _lines(context, own[0].function, place)
    text = "\n".join([f"{name} = {tree.segment(place.value, texts)}", *lines, f"return {name}"])
    message = f"`{lines[0]}` stands before the result of the step is returned"
    edit = Replace(tree.span(place), text)
    return decision(RULE, Status.ROUTINE, own[0].module, place, message, [edit])


def _update(
    context: Context, function: Function, place: ast.stmt, *, leaving: bool = False
) -> Decision:
    """Put an update after a statement, or before one that leaves the iteration."""
    lines = _lines(context, function, place)
    edit: Edit = Insert(function.module.tree.span(place), "\n".join(lines), after=not leaving)
    where = (
        "stands before the iteration is left"
        if leaving
        else "follows the last step of the iteration"
    )
    message = f"`{lines[0]}` {where}"
    return decision(RULE, Status.ROUTINE, function.module, place, message, [edit])


def _lines(context: Context, function: Function, place: ast.stmt) -> list[str]:
    """Return the lines that update the scaler and keep its bounds."""
    scaler = context.scaler(function, place)
    options = [context.unit.options[site] for site in context.creations]
    bounds = {(o.pinned, o.minimum, o.maximum) for o in options}
    pinned, minimum, maximum = bounds.pop() if len(bounds) == 1 else (None, None, None)
    lines = [f"{scaler}.update({pinned or ''})"]
    if minimum:
        lines += [f"if {scaler}.get_scale() < {minimum}:", f"    {scaler}.update({minimum})"]
    if maximum:
        lines += [f"if {scaler}.get_scale() > {maximum}:", f"    {scaler}.update({maximum})"]
    return lines


def _untrained(
    context: Context, steps: list[Step], backwards: list[Backward]
) -> Iterator[Decision]:
    """Say where a step may come without a gradient for its optimizer."""
    message = "{} may step without any gradient: GradScaler.step then raises, where Apex stepped on nothing"
    advice = "step an optimizer only where a backward pass reached its parameters"
    module = steps[0].module
    for step in steps:
        if skipped_backward(context.unit, step, backwards) is not None:
            what = f"`{step.tree.segment(step.optimizer)}`"
            yield decision(
                RULE, Status.NOTE, module, step.call, message.format(what), advice=advice
            )
    for step in wrapping(context.unit, steps):
        yield decision(RULE, Status.NOTE, module, step.call, _WRAPPED)
    for node in frozen_at_times(context.unit, steps):
        what = "an optimizer whose parameters are frozen here"
        yield decision(RULE, Status.NOTE, module, node, message.format(what), advice=advice)


def _differing(context: Context) -> Iterator[Decision]:
    """Bounds that differ between programs which share a step cannot be written there."""
    if loses_bounds(context):
        message = "the bounds of the loss scale differ between the programs that share this step, and are not kept"
        advice = "clamp with scaler.update(value) after scaler.update() where a bound matters"
        for site in context.creations:
            yield decision(RULE, Status.NOTE, site.module, site.node, message, advice=advice)


def _joint(context: Context) -> Iterator[Decision]:
    for block in context.scaled.values():
        if are_several(context.unit, block):
            message = "Apex skipped all of these optimizers when one overflowed; GradScaler decides for each"
            advice = (
                "`amp-migrate explain AMP105` shows how to decide once for all of them, as Apex did"
            )
            module, node = block.site.module, block.site.node
            yield decision(RULE, Status.NOTE, module, node, message, advice=advice)
