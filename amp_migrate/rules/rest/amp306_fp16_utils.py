"""`apex.fp16_utils`, the interface before `apex.amp`, and the `FP16_Optimizer` of `apex.optimizers`.

## What it does
A training with `FP16_Optimizer` becomes a native one as a whole: `network_to_half`, `FP16Model`, `BN_convert_float`,
`convert_network` and `.half()` on its network and inputs go, `optimizer.backward(loss)` becomes
`scaler.scale(loss).backward()`, `update_master_grads()` goes, `clip_master_grads(n)` becomes `scaler.unscale_(optimizer)` and
`clip_grad_norm_`, `optimizer.loss_scale` becomes `scaler.get_scale()`, `dynamic_loss_scale` and `static_loss_scale` decide what
the GradScaler is made with. Master weights that a program keeps by hand go as well: both lists of `prep_param_lists` become
that of the weights, `model_grads_to_master_grads` and `master_params_to_model_params` go, and the loss and its gradients stay
scaled as the program does it.

The `FP16_Optimizer` of `apex.optimizers` (until 2019) or `apex.contrib.optimizers` around a `FusedAdam` becomes native in the
same way; `optimizer.cur_scale` becomes `scaler.get_scale()`. The FusedAdam stays, as Apex still has it, without
`max_grad_norm`, `use_mt`, `eps_inside_sqrt=False` and `amp_scale_adjustment`: for `max_grad_norm=n`, `scaler.unscale_(optimizer)` and
`clip_grad_norm_(group["params"], n)` for each group of parameters stand in front of the step, under the flag of fp16 where
another optimizer takes the step without it. Its dynamic scale grows every 1000 steps, so does the GradScaler.

Any other use is reported with what to write. `to_python_float(x)` becomes `x.item()`, and an
`import *` of which nothing is used is removed.

## Why
`apex.fp16_utils` was removed from Apex in May 2025, `apex.optimizers.FP16_Optimizer` in 2019. It keeps the model in fp16 and master weights beside it, where
autocast keeps one set of fp32 weights.

## Example
    model = network_to_half(model)
    optimizer = FP16_Optimizer(torch.optim.SGD(model.parameters(), lr=0.1), dynamic_loss_scale=True)
    for images, labels in loader:
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        optimizer.backward(loss)
        optimizer.step()

## Use instead
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for images, labels in loader:
        with torch.cuda.amp.autocast():
            loss = criterion(model(images), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

## Safety
As faithful as O2 under autocast: the same losses are scaled, the same gradients clipped and the same steps taken, with weights
that stay fp32 instead of fp16 beside fp32 masters; names in state dicts lose what `network_to_half` and `FP16Model` put before
them, and both are said in a finding. A clip by `max_grad_norm` is the same as that of FusedAdam, which divided by
`(norm + 1e-6) / n` where torch multiplies by `n / (norm + 1e-6)`: results agree to rounding. A dynamic scale stopped at 1 there.
Without `bias_correction=False`, the FusedAdam of today corrects `eps` and `weight_decay` in another way than that of 2019, which a
finding says. What cannot be said with a GradScaler, as a closure, leaves the training as it is.
`to_python_float` is faithful: a list, of which Apex took the first element, has no `item` and raises.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.stand_ins import clip_loop, is_nothing, stands_for_nothing
from amp_migrate.plan.model import (
    Decision,
    Drop,
    DropKeyword,
    Finding,
    Replace,
    ReplaceExpression,
    Status,
)
from amp_migrate.rules.base import FileContext, Rule, Safety, decision
from amp_migrate.rules.guards.kept import starred_fp16
from amp_migrate.rules.rest.found.uses import ORDER, public, uses

RULE = Rule(
    "AMP306", "apex.fp16_utils becomes autocast and a GradScaler", Safety.FAITHFUL, order=ORDER
)

_OPTIMIZER = (
    "write amp.initialize and amp.scale_loss in its place (keep the model in fp32, backward under `with "
    "amp.scale_loss(loss, optimizer) as scaled_loss:`, clip amp.master_params(optimizer)), then run again"
)
_HALF = (
    "keep the model in fp32 and run its forward pass under torch.cuda.amp.autocast(); {} put {} before the names "
    "in its state dicts, which old checkpoints carry"
)
_MASTER = (
    "with fp32 weights under autocast there are no master copies: delete it, and give model.parameters() "
    "to the optimizer"
)
_SCALER = "use torch.cuda.amp.GradScaler{}"
_ADVICE = {
    "FP16_Optimizer": _OPTIMIZER,
    "network_to_half": _HALF.format("network_to_half", "`1.`"),
    "FP16Model": _HALF.format("FP16Model", "`network.`"),
    "convert_network": "keep the model in fp32 and run its forward pass under torch.cuda.amp.autocast()",
    "convert_module": "keep the model in fp32 and run its forward pass under torch.cuda.amp.autocast()",
    "BN_convert_float": "delete it: under autocast batch normalization has fp32 weights anyway",
    "tofp16": "delete it: autocast casts the inputs of the layers that run in fp16",
    "prep_param_lists": _MASTER,
    "model_grads_to_master_grads": _MASTER,
    "master_params_to_model_params": _MASTER,
    "to_python_float": "write .item()",
    "clip_grad_norm": "use torch.nn.utils.clip_grad_norm_, after scaler.unscale_(optimizer)",
    "LossScaler": _SCALER.format(
        "(init_scale=S, growth_interval=2**31 - 1) for a scale S that does not move"
    ),
    "DynamicLossScaler": _SCALER.format("(init_scale=2.0**32, growth_interval=1000), its defaults"),
}


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Report the uses of one file."""
    yield from _written(context)
    if not context.settings.enabled(RULE.code):
        return
    names = ("apex.fp16_utils.", "apex.optimizers.FP16_Optimizer")
    sites = uses(context, *names, "apex.contrib.optimizers.FP16_Optimizer")
    found: dict[ast.AST, str] = {
        node: f"apex.fp16_utils.{node.id}" for node in starred_fp16(context)
    }
    found |= {site.node: public(site.name) for site in sites}
    for node, name in found.items():
        number = _number(context, node) if name.endswith(".to_python_float") else None
        yield number or _left(context, node, name)


def _written(context: FileContext) -> Iterator[Decision]:
    """Tell what becomes of what today's amp was read for, and drop what nothing takes the place of."""
    tree = context.module.tree
    for said in tree.older.said:
        status = Status.MIGRATED if said.migrated else Status.NOTE
        finding = Finding(tree.path, said.span, said.code, status, said.message)
        yield Decision(finding)
    for statement in tree.nodes(ast.Expr):
        if stands_for_nothing(statement):
            edits = [Drop(tree.span(statement))]
            yield decision(RULE, Status.ROUTINE, context.module, statement, "goes", edits)
        loop = clip_loop(tree, statement)
        if loop is not None:
            edit = Replace(tree.span(statement), loop)
            yield decision(RULE, Status.ROUTINE, context.module, statement, "clips", [edit])
    for call in tree.nodes(ast.Call):
        going = [k.arg for k in call.keywords if k.arg and is_nothing(k.value)]
        drops = [DropKeyword(tree.span(call), name) for name in going]
        if drops:
            yield decision(RULE, Status.ROUTINE, context.module, call, "goes", drops)


def _number(context: FileContext, node: ast.AST) -> Decision | None:
    """Read a tensor of one element by its method; None where it is not seen what is read."""
    tree = context.module.tree
    call = tree.call_of(node)
    if call is None or call.keywords:
        return None
    if len(call.args) != 1 or isinstance(call.args[0], ast.Starred):
        return None
    text = tree.segment(call.args[0])
    if not isinstance(call.args[0], ast.Name | ast.Attribute | ast.Subscript | ast.Call):
        text = f"({text})"
    context.taken.add(node)
    edit = ReplaceExpression(tree.span(call), f"{text}.item()")
    message = f"becomes `{text}.item()`"
    return decision(RULE, Status.MIGRATED, context.module, node, message, [edit])


def _left(context: FileContext, node: ast.AST, full: str) -> Decision:
    module, _, name = full.rpartition(".")
    message = f"{name} was removed with {module}, and native AMP does its work in another way"
    if module == "apex.contrib.optimizers":
        message = (
            f"{name} of {module} is deprecated in Apex, and native AMP does its work in another way"
        )
    advice = _ADVICE.get(name, "use torch.cuda.amp.autocast and GradScaler with an fp32 model")
    line = context.module.tree.span(node).line
    kept = context.module.tree.older.kept.get(line)
    if kept is not None:
        why = kept.seen_from(context.module.path, line)
        message = f"{full} stays, with all of its training: {why}"
        advice = kept.advice
    return decision(RULE, Status.LEFT, context.module, node, message, advice=advice)
