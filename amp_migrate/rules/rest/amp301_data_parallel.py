"""`apex.parallel.DistributedDataParallel` becomes the one of torch.

## What it does
Writes `torch.nn.parallel.DistributedDataParallel` with the device of the process as `device_ids` (what the program gave to
`torch.cuda.set_device`, as `args.local_rank`, else the current one), as Apex ran one process for each GPU, and with `broadcast_buffers=False`, as Apex sent parameters once and buffers never.
Arguments that only tuned Apex's buckets (`message_size`, `delay_allreduce`, `num_allreduce_streams`, `prof`, ...)
go. Type checks and the import follow, and classes derived from it, where all that makes their objects is seen. `model.disable_allreduce()` and `model.enable_allreduce()` set
`model.require_backward_grad_sync`, where the passes of the model are in the same function and none lies around them.
A variable that holds Apex's class or torch's by an option (`DDP = ApexDDP if args.apex else TorchDDP`) holds torch's, and its calls get `broadcast_buffers=not args.apex`.

## Why
`apex.parallel` was removed from Apex in May 2025. torch overlaps its reductions with the backward pass by itself.

## Example
    from apex.parallel import DistributedDataParallel as DDP
    model = DDP(model, delay_allreduce=True)

## Use instead
    from torch.nn.parallel import DistributedDataParallel as DDP
    model = DDP(model, device_ids=[torch.cuda.current_device()], broadcast_buffers=False)

## Safety
Faithful. torch divides gradients before it sums them, Apex afterwards: for worlds that are no power of two the last
bits may differ (`gradient_predivide_factor` only moved that division, and goes). `gradient_average=False` and
`allreduce_communicators` change the gradients themselves and are left. Where some parameters get no gradient in a
step, which Apex allowed (an encoder's pooler that nothing uses), torch raises an error and asks for
`find_unused_parameters=True`; that is written where the program freezes a part of the network after wrapping it, and where a pass with a backward
says that the forward leaves out a part with weights (`model(x, with_boxes=False)`). A network that is frozen whole before it is wrapped is left, as torch raises for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.plan.model import Decision, ReplaceExpression, Status
from amp_migrate.rules.base import FileContext, Rule, Safety, decision
from amp_migrate.rules.rest.found.calls import arguments, call_of, call_text, is_constant
from amp_migrate.rules.rest.found.chosen import Chosen, chosen, defaults
from amp_migrate.rules.rest.found.derived import constructions, derived
from amp_migrate.rules.rest.found.device import frozen
from amp_migrate.rules.rest.found.reduced import switched
from amp_migrate.rules.rest.found.type_names import doubled, only_names_type
from amp_migrate.rules.rest.found.unused import ADD, RAISES, noted, without_gradient
from amp_migrate.rules.rest.found.uses import (
    ORDER,
    Native,
    Obstacle,
    Spelled,
    forget_native,
    is_imported_otherwise,
    is_skipped,
    is_variable,
    origin,
    replaced_import,
    spell,
    uses,
)

RULE = Rule(
    "AMP301", "Apex's DistributedDataParallel becomes torch's", Safety.FAITHFUL, order=ORDER
)

APEX = "apex.parallel.DistributedDataParallel"
TORCH = Native(
    "torch.nn.parallel",
    "DistributedDataParallel",
    ("torch.nn.parallel.distributed.DistributedDataParallel",),
)
_PARAMETERS = (
    "module", "message_size", "delay_allreduce", "shared_param", "allreduce_trigger_params",
    "retain_allreduce_buffers", "allreduce_always_fp32", "num_allreduce_streams",
    "allreduce_communicators", "gradient_average", "gradient_predivide_factor",
    "gradient_average_split_factor", "prof",
)  # fmt: skip
_DROPPED = frozenset(_PARAMETERS) - {"module"}
_TORCH_ONLY = frozenset(
    (
        "device_ids", "output_device", "dim", "broadcast_buffers", "process_group", "bucket_cap_mb",
        "find_unused_parameters", "check_reduction", "gradient_as_bucket_view", "static_graph",
    )
)  # fmt: skip
_BY_HAND = (
    "write torch.nn.parallel.DistributedDataParallel(module, device_ids=[torch.cuda.current_device()], "
    "broadcast_buffers=False) where the object is made"
)
_TYPE = (
    "write torch.nn.parallel.DistributedDataParallel here where it only names the type; where it is called, see "
    "`amp-migrate explain AMP301` for its arguments"
)


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Replace the wrapper of one file, with its imports."""
    if not context.settings.enabled(RULE.code):
        return
    forget_native(context)
    groups: dict[ast.alias | None, list[Site]] = {}
    for site in uses(context, APEX):
        groups.setdefault(origin(site), []).append(site)
    for alias, sites in groups.items():
        yield from _group(context, alias, sites)
    if groups:
        sites = [site for group in groups.values() for site in group]
        calls = [call for site in sites if (call := call_of(site)) is not None]
        yield from switched(RULE, context, [(context.module, call) for call in calls])


def _group(context: FileContext, alias: ast.alias | None, sites: list[Site]) -> Iterator[Decision]:
    obstacles = {site: _obstacle(context, site, alias) for site in sites}
    all_done = not any(obstacles.values()) and not any(map(is_skipped, sites))
    for site, obstacle in obstacles.items():
        if obstacle:
            message, advice = obstacle
            yield decision(RULE, Status.LEFT, site.module, site.node, message, advice=advice)
        else:
            spelled = spell(context, site, TORCH, all_done)
            yield from _migrated(context, site, spelled)
            yield from _made(context, site)
    imported = spell(context, sites[0], TORCH, all_done).imported if all_done else None
    if imported is not None:
        yield from replaced_import(RULE, context, imported, TORCH)


def _obstacle(context: FileContext, site: Site, alias: ast.alias | None) -> Obstacle | None:
    call = call_of(site)
    if chosen(context, site, TORCH) is not None:
        return None
    if context.keeps_guards and alias is not None and _guarded(site, alias):
        return Obstacle(
            "the `try` that imports DistributedDataParallel stays, with other Apex code that is left",
            _BY_HAND,
        )
    if call is None:
        cls = derived(site)
        if cls is not None:
            return _base_obstacle(context, site, cls)
        if only_names_type(context, site):
            return _holding(site, _TYPE) if is_variable(context, site) else None
        return Obstacle(
            "Apex's DistributedDataParallel is used as a value, and it is not known what for", _TYPE
        )
    if is_variable(context, site) or is_imported_otherwise(site, TORCH):
        return _holding(site)
    given = arguments(call, _PARAMETERS)
    if given is None or "module" not in given:
        return Obstacle(
            "the arguments of DistributedDataParallel are unpacked here, and cannot be read",
            _BY_HAND,
        )
    return _argument_obstacle(given) or frozen(context.project, site.module, call, given["module"])


def _base_obstacle(context: FileContext, site: Site, cls: ast.ClassDef) -> Obstacle | None:
    """Return why the base of a class cannot become torch's: its objects are made as Apex's were."""
    calls = constructions(context, site, cls)
    if calls is None or is_variable(context, site):
        return Obstacle(
            f"{cls.name} is derived from Apex's DistributedDataParallel, and not all that makes it is seen here",
            "derive it from torch.nn.parallel.DistributedDataParallel, and give that device_ids=[torch.cuda.current_device()], "
            "broadcast_buffers=False where it is made",
        )
    for call in calls:
        given = arguments(call, _PARAMETERS)
        if given is None or "module" not in given:
            return Obstacle(
                f"the arguments of {cls.name} are unpacked, and cannot be read", _BY_HAND
            )
        if (found := _argument_obstacle(given)) is not None:
            return found
    return None


def _holding(site: Site, advice: str = _BY_HAND) -> Obstacle:
    text = site.module.tree.segment(site.node)
    return Obstacle(f"`{text}` may hold Apex's DistributedDataParallel or another class", advice)


def _guarded(site: Site, alias: ast.alias) -> bool:
    """Tell whether the import stands in a guard that binds the name otherwise where Apex is missing."""
    guard = site.module.tree.enclosing(alias, ast.Try)
    name = alias.asname or alias.name
    return guard is not None and any(
        isinstance(n, ast.alias) and (n.asname or n.name) == name
        for handler in guard.handlers
        for n in ast.walk(handler)
    )


def _argument_obstacle(given: dict[str, ast.expr]) -> Obstacle | None:
    if not is_constant(given.get("gradient_average"), True):
        return Obstacle(
            "gradient_average=False has no native argument",
            "torch averages over the processes: multiply the loss by "
            "torch.distributed.get_world_size(), or register a communication hook",
        )
    if not is_constant(given.get("allreduce_communicators"), None):
        return Obstacle(
            "allreduce_communicators has no native argument",
            "give torch's DistributedDataParallel the group to reduce over as process_group=",
        )
    unknown = [k for k in given if k not in _PARAMETERS and k not in _TORCH_ONLY]
    if unknown:
        return Obstacle(f"neither Apex nor torch knows the argument {unknown[0]}", _BY_HAND)
    return None


def _migrated(context: FileContext, site: Site, spelled: Spelled) -> Iterator[Decision]:
    call = call_of(site)
    choice = chosen(context, site, TORCH)
    if choice is not None:
        yield from _chosen(site, choice, spelled)
        return
    if call is None:
        edits = doubled(context, site, TORCH, spelled) or _renamed(site, spelled)
        yield decision(
            RULE, Status.MIGRATED, site.module, site.node, "becomes torch's class", edits
        )
        return
    yield from _called(context, site, call, spelled.name)


def _chosen(site: Site, choice: Chosen, spelled: Spelled) -> Iterator[Decision]:
    """Put torch's class into both arms of a choice, and keep apart at its calls what the two did with buffers."""
    tree, call = site.module.tree, call_of(site)
    edits: list[ReplaceExpression] = []
    if site.node in (choice.node.body, choice.node.orelse):
        name = spelled.name if spelled.imported else tree.segment(choice.native)
        edits = [ReplaceExpression(tree.span(choice.node), name)]
    elif call is not None:
        given = [tree.segment(a) for a in call.args] + [f"broadcast_buffers={choice.broadcast}"]
        text = call_text(site, call, tree.segment(call.func), given)
        edits = [ReplaceExpression(tree.span(call), text)]
    message = "becomes torch's DistributedDataParallel, which is chosen either way"
    yield decision(RULE, Status.MIGRATED, site.module, site.node, message, edits)
    if call is not None:
        yield decision(RULE, Status.NOTE, site.module, call, RAISES, advice=ADD)


def _made(context: FileContext, site: Site) -> Iterator[Decision]:
    """Give the objects of a class derived from Apex's what torch takes."""
    cls = derived(site)
    calls = constructions(context, site, cls) if cls is not None else None
    for call in calls or ():
        yield from _called(context, site, call, site.module.tree.segment(call.func), Status.ROUTINE)


def _called(
    context: FileContext, site: Site, call: ast.Call, name: str, status: Status = Status.MIGRATED
) -> Iterator[Decision]:
    """Rewrite the arguments of a call for torch."""
    given = arguments(call, _PARAMETERS) or {}
    tree = site.module.tree
    text = call_text(site, call, name, _written(context, site, call, given))
    edit = ReplaceExpression(tree.span(call), text)
    gone = [name for name in given if name in _DROPPED]
    message = "becomes torch's DistributedDataParallel"
    message += f"; {', '.join(gone)} only tuned Apex's" if gone else ""
    node = site.node if status is Status.MIGRATED else call
    yield decision(RULE, status, site.module, node, message, [edit])
    if not is_constant(given.get("gradient_predivide_factor"), 1, 1.0):
        note = (
            "gradient_predivide_factor is dropped: torch divides by the number of processes first"
        )
        yield decision(RULE, Status.NOTE, site.module, call, note)
    if "find_unused_parameters" not in given:
        delays = not is_constant(given.get("delay_allreduce"), False)
        yield from noted(RULE, context, site.module, call, delays)


def _renamed(site: Site, spelled: Spelled) -> list[ReplaceExpression]:
    if site.module.tree.segment(site.node) == spelled.name:
        return []
    return [ReplaceExpression(site.span, spelled.name)]


def _written(
    context: FileContext, site: Site, call: ast.Call, given: dict[str, ast.expr]
) -> Iterator[str]:
    """Yield the arguments for torch. Who passed torch's own already meant torch's defaults."""
    segment = site.module.tree.segment
    yield segment(given["module"])
    own = {name: value for name, value in given.items() if name in _TORCH_ONLY}
    for name, value in own.items():
        yield f"{name}={segment(value)}"
    if not own:
        yield from defaults(context, site, call, TORCH)
    if "find_unused_parameters" not in own:
        if without_gradient(context.project, site.module, call) is not None:
            yield "find_unused_parameters=True"
