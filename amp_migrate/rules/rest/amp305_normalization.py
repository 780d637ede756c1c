"""Apex's fused normalization layers, which still exist, and what torch has in their place.

## What it does
Names the exact counterpart in a note. With `--unsafe`, writes `torch.nn.LayerNorm` for `FusedLayerNorm` and
`torch.nn.RMSNorm`, with its `eps`, for `FusedRMSNorm`.

## Why
`apex.normalization` is still part of Apex, but a program that needs nothing else of it can do without building Apex.

## Example
    self.norm = FusedRMSNorm(dim)

## Use instead
    self.norm = torch.nn.RMSNorm(dim, eps=1e-5)

## Safety
Changes behaviour with `--unsafe`: under autocast FusedLayerNorm computes and returns fp16, torch's layer fp32. The
names in state dicts are the same. The default `eps` of torch's RMSNorm is another one, so it is always written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.plan.model import Decision, ReplaceExpression, Status
from amp_migrate.rules.base import FileContext, Rule, Safety, decision
from amp_migrate.rules.rest.found.calls import arguments, call_of, call_text
from amp_migrate.rules.rest.found.uses import (
    ORDER,
    Native,
    is_skipped,
    is_variable,
    origin,
    public,
    replaced_import,
    spell,
    uses,
)

RULE = Rule("AMP305", "Apex's fused normalization has counterparts", Safety.CHANGES, order=ORDER)

_PARAMETERS = ("normalized_shape", "eps", "elementwise_affine", "memory_efficient")
_NATIVE = {
    "FusedLayerNorm": Native(
        "torch.nn", "LayerNorm", ("torch.nn.modules.normalization.LayerNorm",)
    ),
    "FusedRMSNorm": Native("torch.nn", "RMSNorm", ("torch.nn.modules.normalization.RMSNorm",)),
}
_NOTES = {
    "FusedLayerNorm": "torch.nn.LayerNorm with the same arguments, which returns fp32 under autocast",
    "MixedFusedLayerNorm": "torch.nn.LayerNorm, whose output has not the type of its parameters",
    "FusedRMSNorm": "torch.nn.RMSNorm (torch >= 2.4) with eps=1e-5 written out",
    "MixedFusedRMSNorm": "torch.nn.RMSNorm (torch >= 2.4) with eps=1e-5 written out",
    "fused_layer_norm": "torch.nn.functional.layer_norm with eps=1e-6 written out",
    "fused_layer_norm_affine": "torch.nn.functional.layer_norm with eps=1e-6 written out",
    "fused_rms_norm": "torch.nn.functional.rms_norm (torch >= 2.4) with eps=1e-6 written out",
    "fused_rms_norm_affine": "torch.nn.functional.rms_norm (torch >= 2.4) with eps=1e-6 written out",
}


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Report the fused layers of one file, or replace them."""
    if not context.settings.enabled(RULE.code):
        return
    groups: dict[tuple[ast.alias | None, str], list[Site]] = {}
    for site in uses(context, "apex.normalization."):
        name = public(site.name).removeprefix("apex.normalization").lstrip(".")
        groups.setdefault((origin(site), name), []).append(site)
    for (_, name), sites in groups.items():
        native = _NATIVE.get(name) if context.settings.unsafe else None
        if native is not None and all(_replaceable(context, site, name) for site in sites):
            yield from _replaced(context, sites, native)
        else:
            yield from (_note(site, name) for site in sites if name)


def _note(site: Site, name: str) -> Decision:
    native = _NOTES.get(name, "see torch.nn")
    message = f"{name} still exists in Apex and stays"
    return decision(
        RULE, Status.NOTE, site.module, site.node, message, advice=f"keep it, or write {native}"
    )


def _replaceable(context: FileContext, site: Site, name: str) -> bool:
    call = call_of(site)
    if (
        is_skipped(site)
        or is_variable(context, site)
        or isinstance(site.module.tree.parent(site.node), ast.ClassDef)
    ):
        return False
    if call is None:
        return name == "FusedLayerNorm"
    given = arguments(call, _PARAMETERS)
    return given is not None and given.keys() <= set(_PARAMETERS)


def _replaced(context: FileContext, sites: list[Site], native: Native) -> Iterator[Decision]:
    for site in sites:
        call = call_of(site)
        name = spell(context, site, native, True).name
        if call is None:
            edit = ReplaceExpression(site.span, name)
        else:
            text = call_text(site, call, name, _written(site, call, native))
            edit = ReplaceExpression(site.module.tree.span(call), text)
        same = site.module.tree.segment(call or site.node) == edit.text
        message = f"becomes torch's {native.name}"
        edits = [] if same else [edit]
        yield decision(RULE, Status.MIGRATED, site.module, site.node, message, edits)
    spelled = spell(context, sites[0], native, True)
    if spelled.imported is not None:
        yield from replaced_import(RULE, context, spelled.imported, native)


def _written(site: Site, call: ast.Call, native: Native) -> Iterator[str]:
    segment = site.module.tree.segment
    yield from (segment(a) for a in call.args[:3])
    for keyword in call.keywords:
        if keyword.arg != "memory_efficient":
            yield f"{keyword.arg}={segment(keyword.value)}"
    given = arguments(call, _PARAMETERS) or {}
    if native.name == "RMSNorm" and "eps" not in given:
        yield "eps=1e-5"
