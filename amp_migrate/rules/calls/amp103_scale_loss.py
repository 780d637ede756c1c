"""The `amp.scale_loss` block becomes `scaler.scale(loss).backward()`.

## What it does
Takes the `with` away, keeps what stands in it, and calls `backward` on the scaled loss. Arguments of
`backward` stay. `loss_id` goes (one GradScaler serves all losses), `delay_unscale` goes (native AMP never
unscales in a backward). A scaled loss that is read elsewhere, or passed on, keeps its name: `scaled_loss = scaler.scale(loss)`.
A block that shares its `with`, or that an ExitStack enters, leaves the other contexts as they are.

## Why
`amp.scale_loss` no longer exists; `GradScaler.scale` multiplies by the same loss scale.

## Example
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()

## Use instead
    scaler.scale(loss).backward()

## Safety
Faithful: bit for bit with the power-of-two scales that both use.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from amp_migrate.apex.unpacked.asked import is_partly_unread
from amp_migrate.facts.paths import base, named, path
from amp_migrate.placement.backwards.behind import read_behind
from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import (
    Decision,
    Drop,
    DropWithItem,
    Edit,
    Hoist,
    Insert,
    Replace,
    ReplaceExpression,
    Status,
)
from amp_migrate.project import Module
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.rules.idle import idle_parameters
from amp_migrate.training.origins.constants import constant_of
from amp_migrate.training.steps import differentiates

RULE = Rule(
    "AMP103", "amp.scale_loss becomes scaler.scale(loss).backward()", Safety.FAITHFUL, order=15
)

_STEPPED_ON = (
    ", and a step on gradients of it that are infinite or NaN is taken, which Apex skipped"
)


def decide(context: Context) -> Iterator[Decision]:
    """Replace every scale_loss block of the unit."""
    for site, block in context.scaled.items():
        if context.is_gone(site.node):
            message = "amp.scale_loss branch is the same code as its counterpart"
            span, loss = site.module.tree.span, context.loss_text(block)
            edits = [ReplaceExpression(span(n), loss) for n in _read_gone(context, block)]
            yield decision(RULE, Status.MIGRATED, site.module, site.node, message, edits)
        else:
            yield _block(context, block)
        yield from _remarks(context, block)
        if not context.is_gone(site.node):
            if _is_unscaled(context, block):
                yield late(site.module, site.node, _STEPPED_ON)
        yield from _unscaled(context, block)
    yield from idle_parameters(context, RULE)


def _block(context: Context, block: ScaleLoss) -> Decision:
    site, tree = block.site, block.site.module.tree
    scaler = context.scaler(site.function, block.node)
    loss = context.loss_text(block)
    scaled = loss if _is_unscaled(context, block) else f"{scaler}.scale({loss})"
    named = _named(context, block)
    edits = list(_opened(block, f"{block.alias} = {scaled}" if named else None))
    if named:
        message = f"becomes `{block.alias} = {scaled}`"
        return decision(RULE, Status.MIGRATED, site.module, site.node, message, edits)
    edits += [ReplaceExpression(tree.span(node), scaled) for node, _ in _uses(context, block)]
    given = f".backward({', '.join(_arguments(block))})" if block.backwards else ""
    message = f"becomes `{scaled}{given}`"
    return decision(RULE, Status.MIGRATED, site.module, site.node, message, edits)


def _opened(block: ScaleLoss, named: str | None) -> Iterator[Edit]:
    """Yield the edits that leave of the `with` of a block what others enter, and give the scaled loss its name."""
    tree = block.site.module.tree
    span, first = tree.span(block.node), tree.span(block.node.body[0])
    if block.entered is not None:
        yield Replace(first, named) if named else Drop(first)
    elif named:
        alone = len(block.node.items) == 1
        yield Insert(span if alone else first, named, after=False)
    if block.entered is not None and _is_read(block):
        return
    yield Hoist(span, "body") if len(block.node.items) == 1 else DropWithItem(span, block.item)


def _is_read(block: ScaleLoss) -> bool:
    """Tell whether an ExitStack is used for more than to enter its block."""
    stack = block.node.items[block.item].optional_vars
    assert isinstance(stack, ast.Name)

    uses = partial(named, name=stack.id)
    scope = block.site.function.scope
    withs = [n for n in ast.walk(scope) if isinstance(n, ast.With)]
    opened = [w for w in withs if any(map(uses, w.items))]
    outside = set(uses(scope)) - {name for w in opened for name in uses(w)}
    return bool(outside) or len(uses(block.node)) > 2


def _is_unscaled(context: Context, block: ScaleLoss) -> bool:
    return any(backward.node is block.node for backward in context.unit.unscaled)


def late(module: Module, node: ast.AST, differs: str = "") -> Decision:
    """Say that a backward behind an `unscale_` is not scaled, and what differs for that."""
    message = "this backward adds to gradients that are unscaled already, so its loss is not scaled"
    return decision(RULE, Status.NOTE, module, node, message + differs)


def _arguments(block: ScaleLoss) -> list[str]:
    call = block.backwards[0]
    segment = block.site.module.tree.segment
    given = [segment(a) for a in call.args]
    return given + [
        f"{k.arg}={segment(k.value)}" if k.arg else f"**{segment(k.value)}" for k in call.keywords
    ]


def _uses(context: Context, block: ScaleLoss) -> Iterator[tuple[ast.Name, bool]]:
    """Yield the uses of the scaled loss in its block, and whether they differentiate it."""
    receivers = {base(call.func) for call in block.backwards}
    for node in block.uses:
        handed = node is block.written_once
        yield node, handed or node in receivers or _differentiated(context, block, node)


def _differentiated(context: Context, block: ScaleLoss, node: ast.AST) -> bool:
    """Tell whether a read of the scaled loss differentiates it: ``torch.autograd.grad(scaled_loss, x)``."""
    module = block.site.module
    for up in module.tree.ancestors(node):
        if isinstance(up, ast.Call) and differentiates(context.unit.project, module, up):
            return True
        if isinstance(up, ast.stmt):
            return False
    return False


def _unscaled(context: Context, block: ScaleLoss) -> Iterator[Decision]:
    """Say that what is logged is another number now."""
    for node in _read_gone(context, block)[:1]:
        message = f"`{block.alias}` was the loss times its scale here; what is read now is the loss itself"
        yield decision(RULE, Status.NOTE, block.site.module, node, message)


def _read_gone(context: Context, block: ScaleLoss) -> list[ast.Name]:
    """Return what reads the scaled loss of a block that goes, where no other block of that name gives it one."""
    if not context.is_gone(block.site.node):
        return []
    reads = [n for n, other in _behind(context, block) if not other]
    if reads and path(block.loss) is None:
        tree = block.site.module.tree
        raise Cannot(
            "AMP902",
            block.site.module,
            reads[0],
            f"`{block.alias}` is read behind its scale_loss block, where the scaled loss is not at hand any more",
            f"assign `{tree.segment(block.loss)}` to a variable before the block and read that, then run again",
        )
    return reads


def _behind(context: Context, block: ScaleLoss) -> list[tuple[ast.Name, bool]]:
    found = read_behind(context.unit, block, context.scaled.values())
    return [(node, other) for node, other in found if not context.is_gone(node)]


def _named(context: Context, block: ScaleLoss) -> bool:
    """Tell whether the scaled loss keeps its name: more is done with it than to run backward on it."""
    if block.named or not all(differentiated for _, differentiated in _uses(context, block)):
        return True
    return bool(_behind(context, block))


def _remarks(context: Context, block: ScaleLoss) -> Iterator[Decision]:
    site = block.site
    if block.loss_id is not None:
        message = (
            "loss_id is dropped: one GradScaler scales all losses, where Apex had a scale for each"
        )
        yield decision(RULE, Status.NOTE, site.module, site.node, message)
    for options in (k.value for k in site.call.keywords if k.arg is None):
        if is_partly_unread(context.unit.project, site, options):
            held = site.module.tree.segment(options)
            message = f"what `{held}` holds is dropped, loss_id and delay_unscale too: a GradScaler takes no options for one loss"
            yield decision(RULE, Status.NOTE, site.module, site.node, message)
    if block.unchecked is not None:
        yield from _unchecked(context, block, block.unchecked)


def _unchecked(context: Context, block: ScaleLoss, asked: ast.expr) -> Iterator[Decision]:
    """Say that steps are skipped which Apex took, where it scaled and was told not to look at the gradients."""
    unit, site = context.unit, block.site
    known = constant_of(unit.project, unit.losses.reached, site.function, asked)
    scales = any(options.scaling for options in unit.options.values())
    if not scales or (known is not None and not known.value):
        return
    where = "" if known is not None else f" where `{site.module.tree.segment(asked)}` holds"
    message = (
        f"delay_overflow_check is dropped: Apex stepped on infinite gradients of this loss{where} and kept its loss scale; "
        "GradScaler skips such a step and lowers the scale"
    )
    yield decision(RULE, Status.NOTE, site.module, site.node, message)
