"""Apex's synchronized batch normalization becomes torch's.

## What it does
Writes `torch.nn.SyncBatchNorm`, `torch.nn.SyncBatchNorm.convert_sync_batchnorm` and
`torch.distributed.new_subgroups` for `SyncBatchNorm`, `convert_syncbn_model` and `create_syncbn_process_group`.

## Why
`apex.parallel` was removed from Apex in May 2025.

## Example
    group = apex.parallel.create_syncbn_process_group(8)
    model = apex.parallel.convert_syncbn_model(model, process_group=group)

## Use instead
    group = torch.distributed.new_subgroups(8)[0]
    model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model, process_group=group)

## Safety
Faithful for models that are converted before their optimizer is made. Apex made new parameters, which an earlier
optimizer did not hold and which were trained though they had been frozen; torch keeps the parameters, frozen or not,
and the mode of the model. `channel_last` and `fuse_relu` have no counterpart and are left.
Before torch 1.12, the layer raises without a process group, as under `torch.nn.DataParallel`, and before 1.9 there is no
`new_subgroups`: notes say so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import bottom
from amp_migrate.plan.model import Decision, ReplaceExpression, Status
from amp_migrate.rules.base import FileContext, Rule, Safety, decision
from amp_migrate.rules.rest.found.calls import arguments, call_of, call_text, is_constant
from amp_migrate.rules.rest.found.derived import constructions, derived
from amp_migrate.rules.rest.found.process_groups import new_in_torch, without_group
from amp_migrate.rules.rest.found.type_names import only_names_type
from amp_migrate.rules.rest.found.uses import (
    ORDER,
    Native,
    Obstacle,
    by_value,
    is_skipped,
    is_variable,
    origin,
    replaced_import,
    spell,
    uses,
)

RULE = Rule("AMP302", "Apex's SyncBatchNorm becomes torch's", Safety.FAITHFUL, order=ORDER)

TORCH = Native(
    "torch.nn",
    "SyncBatchNorm",
    ("torch.nn.modules.SyncBatchNorm", "torch.nn.modules.batchnorm.SyncBatchNorm"),
)
_LAYER = (
    "num_features", "eps", "momentum", "affine", "track_running_stats", "process_group",
    "channel_last", "fuse_relu",
)  # fmt: skip
_CONVERT = ("module", "process_group", "channel_last")
_CONVERTED = "torch.nn.SyncBatchNorm.convert_sync_batchnorm"
_ADVICE = {
    "channel_last": "permute to NCHW before the layer and back after it, or use "
    "torch.channels_last memory, which torch.nn.SyncBatchNorm takes as it is",
    "fuse_relu": "apply torch.nn.functional.relu to the output of torch.nn.SyncBatchNorm",
}


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Replace the layer, the conversion and the groups of one file."""
    if not context.settings.enabled(RULE.code):
        return
    groups: dict[ast.alias | None, list[Site]] = {}
    for site in uses(context, "apex.parallel.SyncBatchNorm"):
        if by_value(context, site):
            yield _held(context, site)
        else:
            groups.setdefault(origin(site), []).append(site)
    for sites in groups.values():
        yield from _layers(context, sites)
    for site in uses(context, "apex.parallel.convert_syncbn_model"):
        made = _conversion(site)
        yield made
        if made.finding.status is Status.MIGRATED:
            yield from without_group(RULE, context, site)
    for site in uses(context, "apex.parallel.create_syncbn_process_group"):
        yield from _grouped(context, site)


def _left(site: Site, message: str, advice: str) -> Decision:
    return decision(RULE, Status.LEFT, site.module, site.node, message, advice=advice)


def _layers(context: FileContext, sites: list[Site]) -> Iterator[Decision]:
    obstacles = [_obstacle(context, site) for site in sites]
    all_done = not any(obstacles) and not any(map(is_skipped, sites))
    for site, obstacle in zip(sites, obstacles, strict=True):
        if obstacle:
            yield _left(site, *obstacle)
            continue
        spelled = spell(context, site, TORCH, all_done)
        yield _layer(context, site, spelled.name)
    spelled = spell(context, sites[0], TORCH, all_done)
    if all_done and spelled.imported is not None:
        yield from replaced_import(RULE, context, spelled.imported, TORCH)


def _held(context: FileContext, site: Site) -> Decision:
    """Decide about a use through a variable, which holds torch's class once its value is rewritten."""
    call = call_of(site)
    given = {k.arg: k.value for k in call.keywords if k.arg} if call is not None else {}
    obstacle = _base_obstacle(context, site) or _argument_obstacle(given, _LAYER)
    if obstacle is None and call is not None and len(call.args) > _LAYER.index("channel_last"):
        message = "torch.nn.SyncBatchNorm takes less arguments"
        obstacle = Obstacle(message, "pass to torch.nn.SyncBatchNorm what it takes")
    if obstacle is not None:
        return _left(site, *obstacle)
    message = "holds torch's SyncBatchNorm where it held Apex's"
    return decision(RULE, Status.MIGRATED, site.module, site.node, message)


def _obstacle(context: FileContext, site: Site) -> Obstacle | None:
    call = call_of(site)
    obstacle = _base_obstacle(context, site)
    if obstacle is not None:
        return obstacle
    if is_variable(context, site):
        message = "the name may also hold something else than Apex's SyncBatchNorm"
        return Obstacle(message, "write torch.nn.SyncBatchNorm where that is meant")
    if call is None:
        return None
    return _argument_obstacle(arguments(call, _LAYER), _LAYER)


def _base_obstacle(context: FileContext, site: Site) -> Obstacle | None:
    """Return why the base of a class cannot become torch's: its objects are given, or read, what torch does not know."""
    cls = derived(site)
    if cls is None:
        return None
    calls = constructions(context, site, cls)
    advice = "derive it from torch.nn.SyncBatchNorm"
    if calls is None or by_value(context, site):
        message = f"{cls.name} is derived from Apex's SyncBatchNorm, and not all that makes it is seen here"
        return Obstacle(message, advice)
    for call in calls:
        obstacle = _argument_obstacle(arguments(call, _LAYER), _LAYER)
        if obstacle is not None:
            return obstacle
    read = next(
        (n for n in ast.walk(cls) if getattr(n, "attr", getattr(n, "arg", None)) in _ADVICE), None
    )
    if read is not None:
        return Obstacle(f"{cls.name} asks for what torch.nn.SyncBatchNorm does not have", advice)
    return None


def _argument_obstacle(
    given: dict[str, ast.expr] | None, parameters: tuple[str, ...]
) -> Obstacle | None:
    if given is None:
        message = "the arguments cannot be seen"
        return Obstacle(message, "pass to torch.nn.SyncBatchNorm what it takes")
    for name, advice in _ADVICE.items():
        if not is_constant(given.get(name), False):
            return Obstacle(f"{name} has no native counterpart", advice)
    unknown = [name for name in given if name not in parameters]
    if unknown:
        return Obstacle(f"Apex has no argument {unknown[0]}", "see torch.nn.SyncBatchNorm")
    return None


def _layer(context: FileContext, site: Site, name: str) -> Decision:
    call = call_of(site)
    tree = site.module.tree
    if call is None or _plain(call, _LAYER):
        edits = [] if tree.segment(site.node) == name else [ReplaceExpression(site.span, name)]
    else:
        text = call_text(site, call, name, _kept(site, call))
        edits = [ReplaceExpression(tree.span(call), text)]
    noun = "class" if only_names_type(context, site) else "SyncBatchNorm"
    message = f"becomes torch's {noun}"
    return decision(RULE, Status.MIGRATED, site.module, site.node, message, edits)


def _plain(call: ast.Call, parameters: tuple[str, ...]) -> bool:
    given = arguments(call, parameters) or {}
    return not given.keys() & _ADVICE.keys()


def _kept(site: Site, call: ast.Call) -> Iterator[str]:
    segment = site.module.tree.segment
    positional = call.args[: _LAYER.index("channel_last")]
    yield from (segment(a) for a in positional)
    for keyword in call.keywords:
        if keyword.arg not in _ADVICE:
            yield f"{keyword.arg}={segment(keyword.value)}"


def _conversion(site: Site) -> Decision:
    call = call_of(site)
    tree = site.module.tree
    edits = [ReplaceExpression(site.span, _CONVERTED)]
    if call is not None:
        given = arguments(call, _CONVERT)
        obstacle = _argument_obstacle(given, _CONVERT)
        if obstacle:
            return _left(site, *obstacle)
        if not _plain(call, _CONVERT):
            parts = [tree.segment(a) for a in call.args[:2]]
            parts += [
                f"{k.arg}={tree.segment(k.value)}" for k in call.keywords if k.arg not in _ADVICE
            ]
            edits = [ReplaceExpression(tree.span(call), call_text(site, call, _CONVERTED, parts))]
    message = (
        "becomes convert_sync_batchnorm, which keeps the parameters, frozen or not, and the "
        "training mode; Apex made new parameters"
    )
    return decision(RULE, Status.MIGRATED, site.module, site.node, message, edits)


def _grouped(context: FileContext, site: Site) -> Iterator[Decision]:
    call = call_of(site)
    tree = site.module.tree
    given = arguments(call, ("group_size",)) if call is not None else None
    size = (given or {}).get("group_size")
    if call is None or size is None:
        yield _left(
            site, "the size of the groups cannot be seen", "use torch.distributed.new_subgroups"
        )
        return
    text = tree.segment(size)
    new = f"torch.distributed.new_subgroups({text})[0]"
    is_whole = isinstance(size, ast.Constant) and size.value == 0
    if is_whole:
        new = "None"
    elif not isinstance(size, ast.Constant):
        if not _is_path(size):
            message = "a group size of 0 meant the whole world, which has to be asked for"
            yield _left(site, message, f"write `{new}` for sizes above 0, else None")
            return
        new = f"{new} if {text} else None"
        if not isinstance(tree.parent(call), ast.Assign | ast.keyword | ast.Call | ast.Return):
            new = f"({new})"
    edit = ReplaceExpression(tree.span(call), new)
    message = "becomes torch.distributed.new_subgroups"
    yield decision(RULE, Status.MIGRATED, site.module, site.node, message, [edit])
    if not is_whole:
        yield from new_in_torch(RULE, context, site)


def _is_path(node: ast.expr) -> bool:
    node = bottom(node)
    return isinstance(node, ast.Name)
