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
Faithful where the losses are computed in `forward`, as detectors and segmentors of mmcv do. What `train_step`
computes of them afterwards runs without casts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import path
from amp_migrate.plan import Decision, Insert, Status
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.unit.bce import everywhere
from amp_migrate.unit.build import elements
from amp_migrate.unit.cannot import Cannot
from amp_migrate.unit.sites import Kind, Site

RULE = Rule("AMP120", "a forward pass that a library runs casts itself", Safety.FAITHFUL, order=20)


def decide(context: Context) -> Iterator[Decision]:
    """Wrap the forward of every model, where a library runs it."""
    unit = context.unit
    if not unit.outside or context.casts.never:
        return
    unit.home.runners.refuse_other_forwards()
    for site in unit.of(Kind.INITIALIZE):
        if not context.is_gone(site.node):
            yield _wrapped(context, site)
    for module, call in everywhere(unit, unit.home.runners.programs()):
        message = (
            "binary cross entropy of probabilities raises where forward() reaches it under autocast"
        )
        advice = "put `with torch.cuda.amp.autocast(enabled=False):` around it, and give it `.float()` inputs"
        yield decision(RULE, Status.NOTE, module, call, message, advice=advice)


def _wrapped(context: Context, site: Site) -> Decision:
    condition = context.unit.options[site].casts
    call = context.spelling.autocast(condition.text if condition.value is None else "")
    lines = [
        f"{model}.forward = {call}(type({model}).forward).__get__({model})"
        for model in _models(context, site)
    ]
    edit = Insert(site.module.tree.span(site.statement), "\n".join(lines), after=True)
    message = (
        f"mmcv runs the forward pass, so forward() of the model runs under `{call}` from here on; what train_step() "
        "computes outside of forward() is not cast"
    )
    return decision(RULE, Status.NOTE, site.module, site.node, message, [edit])


def _models(context: Context, site: Site) -> list[str]:
    """Return the names of the models from the initialize on."""
    given = elements(context.unit.options[site].arguments.get("models"))
    parent = site.module.tree.parent(site.node)
    if isinstance(parent, ast.Assign):
        target = parent.targets[0]
        first = target.elts[0] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
        bound = elements(first)
        given = bound if len(bound) == len(given) else []
    elif not isinstance(parent, ast.Expr):
        given = []
    names = [path(node) for node in given]
    found = [name for name in names if name is not None]
    if not found or len(found) != len(names):
        raise Cannot(
            "AMP904",
            site.module,
            site.node,
            "mmcv runs the forward pass, and the models that must run under autocast have no names here",
            "assign what amp.initialize returns to a variable each for the model and the optimizer, then run again",
        )
    return found
