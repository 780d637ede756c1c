"""Gradients that a `scale_loss` block leaves scaled, as it does not name their optimizer, are unscaled.

## What it does
A GradScaler divides the gradients of every optimizer that it steps, so the gradients are right once the program is
migrated; a finding names the backward, or the step, of whose gradients that is new. With `--only-fixes` the block names
both optimizers, and gets `delay_unscale=False`.

## Why
`amp.scale_loss(loss, optimizer)` divides the gradients of the optimizers that it is given by the loss scale. The loss
may reach the parameters of others as well: of a second optimizer that steps on it, or of a discriminator whose
gradients are not cleared before its own loss. Apex left those gradients multiplied by the loss scale, up to 65536,
which Adam hides.

`delay_unscale=True` leaves the gradients to a later block. Where the last window of an epoch is short, or a step comes
by another test than the one that `delay_unscale` asks, that block never comes, and the step is on scaled gradients.

## Example
    loss = criterion(head(encoder(images)), labels)
    with amp.scale_loss(loss, encoder_optimizer) as scaled_loss:
        scaled_loss.backward()
    encoder_optimizer.step()
    head_optimizer.step()

## Use instead
    scaler.scale(loss).backward()
    scaler.step(encoder_optimizer)
    scaler.step(head_optimizer)
    scaler.update()

## Safety
Changes behaviour: the gradients that were left scaled are divided by the loss scale. A learning rate that was tuned
for them may be too small now.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import path
from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.placement.steps.untrained import never_unscaled, unnamed_in_turn
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, ReplaceExpression, Status
from amp_migrate.project.order import inside
from amp_migrate.protocol.code.program import program_of
from amp_migrate.protocol.delayed import Delayed, delayed
from amp_migrate.protocol.left_scaled import Left, left_scaled, of_block
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.steps import Step

RULE = Rule(
    "AMP214", "gradients that scale_loss left scaled are unscaled", Safety.CHANGES, order=31
)
_ADVICE = "a learning rate that was tuned for gradients of that size may be too small now"

_DELAY = "delay_unscale may leave multiplied by the loss scale"
_DIVIDE = "let delay_unscale be false in the last block before this step"


def decide(context: Context) -> Iterator[Decision]:
    """Report the backward passes of a unit that give gradients to optimizers which their blocks do not name."""
    for left, _ in _left(context):
        what = _spoken(_steps(context, left))
        if not context.settings.enabled(RULE.code):
            raise Cannot(
                RULE.code,
                left.function.module,
                left.backward,
                f"this gives gradients to {what}, which its scale_loss does not name, and AMP214 is switched off",
                "let amp-migrate use AMP214, or name the optimizer in scale_loss, then run again",
            )
        message = f"the gradients that this gives {what} are unscaled as well, which Apex left multiplied by the loss scale"
        module = left.function.module
        yield decision(RULE, Status.FIXED, module, left.backward, message, advice=_ADVICE)
    for step in _delayed(context):
        if not context.settings.enabled(RULE.code):
            raise Cannot(
                RULE.code,
                step.function.module,
                step.step,
                f"this steps on gradients that {_DELAY}, and AMP214 is switched off",
                f"let amp-migrate use AMP214, or {_DIVIDE}, then run again",
            )
        message = f"unscales the gradients of this step, which {_DELAY}"
        yield decision(RULE, Status.FIXED, step.function.module, step.step, message, advice=_ADVICE)
    if context.settings.enabled(RULE.code):
        yield from _unnamed(context)


def decide_in_apex(context: Context) -> Iterator[Decision]:
    """Name the optimizers in the blocks whose losses give them gradients, where they are called the same there."""
    if not context.settings.enabled(RULE.code):
        return
    for left, block in _left(context):
        module, steps = left.function.module, _steps(context, left)
        own = [step for step in steps if path(step.optimizer) and _is_at_hand(left, step)]
        if own and block.optimizers is not None:
            named = [module.tree.segment(node) for node in block.optimizer_list()]
            text = f"[{', '.join([*named, module.tree.segment(own[0].optimizer)])}]"
            edit = ReplaceExpression(module.tree.span(block.optimizers), text)
            message = f"names {_spoken(own)} as well, to which this loss gives gradients"
            yield decision(RULE, Status.FIXED, module, left.backward, message, [edit])
        else:
            message = f"this gives gradients to {_spoken(steps)}, which Apex leaves multiplied by the loss scale"
            advice = "name that optimizer in scale_loss as well"
            yield decision(RULE, Status.NOTE, module, left.backward, message, advice=advice)
    stepped = {found.optimizer for found in _delayed(context)}
    for block in context.scaled.values() if stepped else ():
        if block.delayed is not None and stepped & _named(context, block):
            module = block.site.module
            message = "unscales here: a step would take the gradients before a later block does"
            edit = ReplaceExpression(module.tree.span(block.delayed), "False")
            yield decision(RULE, Status.FIXED, module, block.delayed, message, [edit])


def _named(context: Context, block: ScaleLoss) -> frozenset[int]:
    """Return the numbers of the optimizers that a block names."""
    program = program_of(context.unit.project)
    function = block.site.function
    return frozenset().union(*(of_block(program, function, call) for call in block.backwards))


def _left(context: Context) -> Iterator[tuple[Left, ScaleLoss]]:
    """Yield them with the blocks of the unit that they stand in, while casts may be on.

    What goes with a branch stays as what stands for it in the other one.
    """
    if context.casts.never:
        return
    for left in left_scaled(program_of(context.unit.project)):
        for block in context.scaled.values():
            if block.site.module is left.function.module:
                if inside(block.site.module.tree, left.backward, block.node):
                    yield left, block


def _delayed(context: Context) -> Iterator[Delayed]:
    """Yield the steps of the unit on gradients that a block has left for another one, while casts may be on."""
    steps = {step.call for step in context.unit.steps}
    waits = any(block.delayed is not None for block in context.scaled.values())
    if waits and not context.casts.never:
        for found in delayed(program_of(context.unit.project)):
            if found.step in steps and not context.is_gone(found.step):
                yield found


def _unnamed(context: Context) -> Iterator[Decision]:
    """Say of steps that no `scale_loss` names what Apex did, where it is not known which losses reach them."""
    if context.casts.never:
        return
    program = program_of(context.unit.project)
    told = {left.optimizer for left in left_scaled(program)}
    for step in never_unscaled(context.unit, context.scaled.values()):
        known = program.training.objects.optimizers_of(step.module, step.optimizer)
        if not context.is_gone(step.call) and told.isdisjoint(known):
            what = f"no amp.scale_loss names `{step.tree.segment(step.optimizer)}`"
            message = f"{what}: Apex left its gradients scaled, and stepped on them; GradScaler unscales them"
            yield decision(RULE, Status.NOTE, step.module, step.call, message)
    for step, one in unnamed_in_turn(context.unit, context.scaled.values()):
        if not told and not context.is_gone(step.call):
            what = (
                f"no amp.scale_loss names `{step.tree.segment(one)}`, which this steps in its turn"
            )
            message = f"{what}: Apex left its gradients scaled; GradScaler unscales them"
            yield decision(RULE, Status.NOTE, step.module, step.call, message)


def _steps(context: Context, left: Left) -> list[Step]:
    """Return the steps of the optimizer."""
    objects = program_of(context.unit.project).training.objects
    return [
        step
        for step in context.unit.steps
        if left.optimizer in objects.optimizers_of(step.module, step.optimizer)
    ]


def _is_at_hand(left: Left, step: Step) -> bool:
    """Tell whether the optimizer of a step goes by the same name where a backward runs: in its function, or on its object."""
    here, there, held = left.function.method, step.function.method, step.optimizer
    if step.function is left.function:
        return True
    own = isinstance(held, ast.Attribute) and step.function.is_receiver(held.value)
    return own and here.cls is there.cls and here.receiver == there.receiver


def _spoken(steps: list[Step]) -> str:
    return f"`{ast.unparse(steps[0].optimizer)}`" if steps else "another optimizer"
