"""A backward of the project's own is cast, as it was by Apex.

## What it does
Puts `custom_fwd` on the `forward` and `custom_bwd` on the `backward` of a `torch.autograd.Function` whose `backward` multiplies
matrices, adds up, takes powers, or runs a network again, as the adjoint of an ODE or a checkpoint does. What takes gradients in it
(`torch.autograd.grad`) runs without casts, as everywhere. Where these decorators may not stand, as on a `forward` that is given no
context, a note says so.

## Why
O1 patches functions of torch for good, so whatever Python runs in a backward pass was cast as well. Autocast is off there:
`custom_bwd` turns it on where it was on in the `forward` that `custom_fwd` stands on.

## Example
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad @ weight.t(), x.t() @ grad

## Use instead
    class Scale(torch.autograd.Function):
        @staticmethod
        @torch.cuda.amp.custom_fwd
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight

        @staticmethod
        @torch.cuda.amp.custom_bwd
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad @ weight.t(), x.t() @ grad

## Safety
Faithful, but for what a note names: that computes in the types of what it is given. Without autocast the decorators do nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.autocast.disabled import Disabled
from amp_migrate.autocast.spared.statements import nodes_of
from amp_migrate.plan.model import AddDecorator, Decision, Edit, Status, Wrap
from amp_migrate.project import Function
from amp_migrate.project.programs import files_of
from amp_migrate.rules.autocast.evaluation_places import cast_parts
from amp_migrate.rules.autocast.gradients_within import summed
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.forwards.own_backward import OwnBackward, cast_backwards, naming
from amp_migrate.training.gradients.taken import taken_in
from amp_migrate.training.steps import differentiates

RULE = Rule("AMP125", "a backward of its own is cast as by Apex", Safety.FAITHFUL, order=20)


def decide(context: Context) -> Iterator[Decision]:
    """Turn autocast on in each `backward` that Apex cast, or say that it is off there."""
    found = () if context.casts.never else cast_backwards(context.unit.project)
    if not found:
        return
    project = context.unit.project
    parts = cast_parts(context, Disabled(context.unit))
    running = {function.module for function, _ in nodes_of(project, parts)}
    paths = {path for module in running for path in files_of(project, module)}
    for own in found:
        if paths.isdisjoint(module.path for module in naming(project, own.cls)):
            continue
        yield _told(context, own) if own.apart else _cast(context, own)


def _cast(context: Context, own: OwnBackward) -> Decision:
    spelling = context.spelling
    module = own.cls.module
    edits: list[Edit] = [
        AddDecorator(module.tree.span(method.node), spelling.decorator(name))
        for method, name in ((own.forward, "custom_fwd"), (own.backward, "custom_bwd"))
        if method.node is not None
    ]
    edits += _without_casts(context, own.backward)
    message = f"{own.cls.name}.backward() is cast where its forward() was, as Apex did"
    return decision(RULE, Status.ROUTINE, module, own.backward.node or own.cls.node, message, edits)


def _without_casts(context: Context, backward: Function) -> Iterator[Edit]:
    """Yield the edits that keep casts out of the gradients that a `backward` takes."""
    project, module = context.unit.project, backward.module
    header = f"with {context.spelling.autocast('False')}:"
    done: set[ast.stmt] = set()
    for call in backward.calls:
        statement = module.tree.statement(call)
        if statement in done or not differentiates(project, module, call):
            continue
        done.add(statement)
        span = module.tree.span(statement)
        found = taken_in(project, context.unit.forwards.indifferent, backward, statement)
        if found is not None or isinstance(statement, ast.Expr):
            yield Wrap(span, span, header)
            yield from summed(found) if found is not None else ()


def _told(context: Context, own: OwnBackward) -> Decision:
    message = f"{own.cls.name}.backward() ran with casts under Apex; autocast is off in a backward pass, so it computes in the types that it is given"
    first, second = (context.spelling.decorator(n) for n in ("custom_fwd", "custom_bwd"))
    advice = f"let forward() take the context, put @{first} on it and @{second} on backward(), or cast in backward() by hand"
    node = own.backward.node or own.cls.node
    return decision(RULE, Status.NOTE, own.cls.module, node, message, advice=advice)
