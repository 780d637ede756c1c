"""Registered functions and decorators of Apex.

## What it does
Deletes `amp.register_half_function(torch, "einsum")` and others that native autocast casts by itself.
Leaves the rest with a finding.

## Why
Autocast has its own lists; `einsum` reaches `bmm`, which runs in fp16.

## Example
    amp.register_half_function(torch, "einsum")

## Use instead
    (nothing)

## Safety
Faithful for the functions that are deleted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.plan import Decision, Drop, Status
from amp_migrate.rules.base import FileContext, Rule, Safety, decision
from amp_migrate.unit.sites import Kind, Site

RULE = Rule("AMP113", "functions registered with Apex", Safety.FAITHFUL)

NATIVE = {
    "register_half_function": {"einsum", "bmm", "matmul", "mm", "baddbmm", "addmm", "linear", "conv1d", "conv2d", "conv3d", "prelu"},
    "register_float_function": {"softmax", "log_softmax", "cross_entropy", "layer_norm", "exp", "log", "pow", "sum", "norm", "cumsum", "prod", "interpolate", "mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits"},
    "register_promote_function": {"bilinear", "cat", "stack", "addcdiv", "addcmul", "atan2", "cross", "dot"},
}  # fmt: skip


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Drop what native autocast does by itself; leave the rest."""
    if context.keeps_guards:
        return
    for site in context.of(Kind.REGISTER):
        name = _registered(site)
        verb = site.name.rpartition(".")[2]
        if name in NATIVE.get(verb, set()) and isinstance(
            site.module.tree.parent(site.node), ast.Expr
        ):
            edit = Drop(site.module.tree.span(site.statement))
            message = f"native autocast casts {name} by itself"
            yield decision(RULE, Status.MIGRATED, site.module, site.node, message, [edit])
        else:
            yield decision(
                RULE,
                Status.LEFT,
                site.module,
                site.node,
                f"{verb} has no native counterpart for {name or 'this function'}",
                advice="cast its arguments where it is called (.half() or .float()), then delete this line",
            )
    for site in context.of(Kind.DECORATOR):
        verb = site.name.rpartition(".")[2]
        yield decision(
            RULE,
            Status.LEFT,
            site.module,
            site.node,
            f"amp.{verb} has no native counterpart for a plain function",
            advice="run the body under torch.cuda.amp.autocast(enabled=False) with .float() arguments; on an "
            "autograd.Function use torch.cuda.amp.custom_fwd and custom_bwd",
        )


def _registered(site: Site) -> str | None:
    arguments = site.call.args
    if (
        len(arguments) == 2
        and isinstance(arguments[1], ast.Constant)
        and isinstance(arguments[1].value, str)
    ):
        return arguments[1].value
    return None
