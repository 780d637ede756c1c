"""Apex's fused optimizers, which still exist, and what torch has in their place.

## What it does
Names the exact counterpart in a note. With `--unsafe`, writes it where every argument has one: `FusedAdam` becomes
`torch.optim.AdamW` (`Adam` for `adam_w_mode=False`), `FusedSGD` becomes `SGD`, `FusedAdagrad` becomes `Adagrad`.

## Why
`apex.optimizers` is still part of Apex, but a program that needs nothing else of it can do without building Apex.

## Example
    optimizer = FusedAdam(model.parameters(), lr=1e-4)

## Use instead
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.0)

## Safety
Changes behaviour with `--unsafe`: the same mathematics, in other kernels, so results agree to rounding (1e-5 over
hundreds of steps). FusedAdam is AdamW, and its default weight_decay is 0.0 where that of torch's AdamW is 0.01.
Optimizer states saved by FusedAdam lack `step` per parameter and do not load into torch's. FusedLAMB, FusedNovoGrad,
`bias_correction=False`, `max_grad_norm` (of Apex before 2019) and `set_grad_none=False` have no counterpart.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import argument
from amp_migrate.facts.stand_ins import is_nothing
from amp_migrate.plan.model import Decision, ReplaceExpression, Status
from amp_migrate.rules.base import FileContext, Rule, Safety, decision
from amp_migrate.rules.rest.found.calls import arguments, call_of, call_text, is_constant
from amp_migrate.rules.rest.found.uses import ORDER, is_variable, public, uses

RULE = Rule("AMP304", "Apex's fused optimizers have counterparts", Safety.CHANGES, order=ORDER)


@dataclass(frozen=True, slots=True)
class _Optimizer:
    """An optimizer of Apex: its parameters in order, those that torch takes, and those that must be as given.

    Parameters in neither may have any value and are dropped.
    """

    torch: str
    parameters: tuple[str, ...]
    kept: frozenset[str]
    needed: dict[str, tuple[object, ...]]


_OPTIMIZERS = {
    "FusedAdam": _Optimizer(
        "AdamW",
        (
            "params", "lr", "bias_correction", "betas", "eps", "adam_w_mode", "weight_decay",
            "amsgrad", "set_grad_none", "capturable", "master_weights",
        ),
        frozenset(("params", "lr", "betas", "eps", "weight_decay", "capturable")),
        {
            "bias_correction": (True,), "adam_w_mode": (True, False), "amsgrad": (False,),
            "set_grad_none": (True,), "master_weights": (False,),
        },
    ),
    "FusedSGD": _Optimizer(
        "SGD",
        (
            "params", "lr", "momentum", "dampening", "weight_decay", "nesterov",
            "wd_after_momentum", "materialize_master_grads", "set_grad_none",
        ),
        frozenset(("params", "lr", "momentum", "dampening", "weight_decay", "nesterov")),
        {"wd_after_momentum": (False,), "set_grad_none": (True,)},
    ),
    "FusedAdagrad": _Optimizer(
        "Adagrad",
        ("params", "lr", "eps", "weight_decay", "set_grad_none", "adagrad_w_mode"),
        frozenset(("params", "lr", "eps", "weight_decay")),
        {"set_grad_none": (True,), "adagrad_w_mode": (False,)},
    ),
}  # fmt: skip

_NOTES = {
    "FusedAdam": "keep it, or write torch.optim.AdamW with weight_decay=0.0 where none is given (torch's default is 0.01); "
    "torch.optim.Adam where adam_w_mode=False; states saved by FusedAdam do not load into it",
    "FusedSGD": "keep it, or write torch.optim.SGD with the same arguments; zero_grad() then sets gradients to None",
    "FusedAdagrad": "keep it, or write torch.optim.Adagrad with the same arguments",
    "FusedLAMB": "keep it, as torch has none; it clips by max_grad_norm=1.0 itself",
    "FusedMixedPrecisionLamb": "keep it, as torch has none",
    "FusedNovoGrad": "keep it, as torch has none",
}


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Report the fused optimizers of one file, or replace them."""
    if not context.settings.enabled(RULE.code):
        return
    for site in uses(context, "apex.optimizers."):
        name = public(site.name).removeprefix("apex.optimizers").lstrip(".")
        if name == "FP16_Optimizer":
            continue
        text = _native(context, site, name)
        if text is not None:
            edit = ReplaceExpression(
                site.module.tree.span(site.module.tree.parents[site.node]), text
            )
            message = f"{name} becomes torch's; results agree to rounding"
            yield decision(RULE, Status.MIGRATED, site.module, site.node, message, [edit])
        elif name:
            yield _note(site, name)


def _note(site: Site, name: str) -> Decision:
    call = call_of(site)
    given = {k.arg for k in call.keywords if not is_nothing(k.value)} if call is not None else set()
    native = _NOTES.get(name, "keep it, or look for its like in torch.optim")
    old = given & {"max_grad_norm", "use_mt", "eps_inside_sqrt"}
    if name in _OPTIMIZERS and old:
        native = f"{native}; and drop {', '.join(sorted(map(str, old)))}, which Apex itself does not take any more"
    limit = argument(call, "max_grad_norm", 10) if call is not None else None
    if name == "FusedLAMB" and limit is not None:
        native = native.replace("1.0", site.module.tree.segment(limit))
    message = f"{name} still exists in Apex and stays"
    return decision(RULE, Status.NOTE, site.module, site.node, message, advice=native)


def _native(context: FileContext, site: Site, name: str) -> str | None:
    """Return the call of torch's optimizer; None where it is not asked for or not the same."""
    call = call_of(site)
    known = _OPTIMIZERS.get(name)
    if not context.settings.unsafe or call is None or known is None or is_variable(context, site):
        return None
    given = arguments(call, known.parameters)
    if given is None or not given.keys() <= set(known.parameters):
        return None
    if not all(is_constant(given.get(k), *values) for k, values in known.needed.items()):
        return None
    return call_text(
        site, call, f"torch.optim.{_class(known, given)}", _written(site, known, given)
    )


def _class(known: _Optimizer, given: dict[str, ast.expr]) -> str:
    mode = given.get("adam_w_mode")
    return "Adam" if mode is not None and is_constant(mode, False) else known.torch


def _written(site: Site, known: _Optimizer, given: dict[str, ast.expr]) -> Iterator[str]:
    segment = site.module.tree.segment
    for name, value in given.items():
        if name in known.kept:
            yield segment(value) if name == "params" else f"{name}={segment(value)}"
    if _class(known, given) == "AdamW" and "weight_decay" not in given:
        yield "weight_decay=0.0"
