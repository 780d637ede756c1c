"""A forward pass that a library runs casts itself.

## What it does
Where mmcv runs the model (`runner.outputs["loss"]` in a hook), wraps the model's own `forward` in autocast at the
place of `amp.initialize`. Training and evaluation both go through it, so no call of the model is wrapped.

## Why
The call of the model stands in the library, where no `with autocast():` can be put. O1 cast it from
`amp.initialize` on.

## Example
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")

## Use instead
    model.forward = torch.cuda.amp.autocast()(type(model).forward).__get__(model)

## Safety
Faithful where the losses are computed in `forward`, as detectors and segmentors of mmcv do. What `train_step` or a
`batch_processor` computes of them afterwards runs without casts. Not for DataParallel over several GPUs, whose replicas
would run the forward of the original.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.autocast.bce import everywhere
from amp_migrate.facts.constants import is_true
from amp_migrate.facts.scopes import assigned
from amp_migrate.plan.model import Decision, Status
from amp_migrate.project import Function, Project
from amp_migrate.project.reach import where_set
from amp_migrate.rules.autocast.library_forward import autocast
from amp_migrate.rules.base import Context, Rule, Safety, decision

_IN_FP32 = ("mmcv.runner.force_fp32", "mmcv.runner.fp16_utils.force_fp32")

RULE = Rule("AMP120", "a forward pass that a library runs casts itself", Safety.FAITHFUL, order=20)


def decide(context: Context) -> Iterator[Decision]:
    """Tell where a library runs the models, whose forwards AMP102 puts under autocast."""
    unit = context.unit
    if not unit.outside or context.casts.never:
        return
    unit.home.runners.refuse_other_forwards()
    for site in unit.of(Kind.INITIALIZE):
        if not context.is_gone(site.node):
            yield _told(context, site, unit.home.runners.library.name)
    for module, call in everywhere(unit, unit.home.runners.programs()):
        if _is_kept_in_fp32(unit.project, unit.project.function_of(module, call)):
            continue
        message = (
            "binary cross entropy of probabilities raises where forward() reaches it under autocast"
        )
        advice = "put `with torch.cuda.amp.autocast(enabled=False):` around it, and give it `.float()` inputs"
        yield decision(RULE, Status.NOTE, module, call, message, advice=advice)


def _is_kept_in_fp32(project: Project, function: Function) -> bool:
    """Tell whether a library turns autocast off in a method: mmcv does so where `fp16_enabled` of its object is on."""
    decorators = function.node.decorator_list if function.node is not None else []
    named = (d.func if isinstance(d, ast.Call) else d for d in decorators)
    if not any(project.external(function.module, each) in _IN_FP32 for each in named):
        return False
    stored = where_set(project, "fp16_enabled")
    return any(is_true(assigned(module.tree, node)) for module, node in stored)


def _told(context: Context, site: Site, library: str) -> Decision:
    message = (
        f"{library} runs the forward pass, so forward() of the model runs under `{autocast(context, site)}` from here on; "
        "what is computed of its outputs outside of forward() is not cast"
    )
    advice = "train with a process for each GPU: replicas of DataParallel would run the forward() of their original"
    return decision(RULE, Status.NOTE, site.module, site.node, message, advice=advice)
