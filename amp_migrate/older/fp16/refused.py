"""What a program does with an `FP16_Optimizer`, or around it, that today's amp has no way to say."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.flow import Graphs, Kind
from amp_migrate.older.feasible import feasible
from amp_migrate.older.found import Found
from amp_migrate.older.fp16.training import Fp16
from amp_migrate.older.sheet import Sheet
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Function, Module
from amp_migrate.project.programs import beside
from amp_migrate.project.reach import run_around
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.gradients.linear import Linear

Passes = list[tuple[Module, ast.Call, bool | None]]
"""Backward passes, and whether they unscale: None where a run decides."""

_DEEPEST = 5
_OWN = frozenset(
    {"backward", "update_master_grads", "clip_master_grads", "loss_scale", "overflow", "cur_scale"}
)


def refuse_other_uses(training: Fp16, found: Found) -> None:
    """Refuse a class that is asked about, and helpers of fp16_utils that work on the same objects."""
    modules = {wrap.module for wrap in training.wraps}
    for module, node, _ in found.wrappers():
        if module.tree.call_of(node) is None and module in modules:
            raise Unwritable(
                module,
                node,
                "FP16_Optimizer is used as a value here, and after the migration there is no such class",
                "ask the flag that turns fp16 on instead, then run again",
            )
    for module, node, name in found.fp16_uses():
        if name.endswith(("_params", "_grads", "_lists")) or name in ("tofp16", "convert_module"):
            if module in modules:
                raise Unwritable(
                    module,
                    node,
                    f"{name} works on fp16 weights or their fp32 copies, beside FP16_Optimizer which does that itself",
                    "delete it, then run again",
                )


def refuse_asked(training: Fp16, found: Found) -> None:
    """Refuse a test for what FP16_Optimizer alone has: ``hasattr(optimizer, "backward")``."""
    for module, call in found.project.nodes(ast.Call):
        asks = isinstance(call.func, ast.Name) and call.func.id in ("hasattr", "getattr")
        if not asks or len(call.args) < 2 or not isinstance(call.args[1], ast.Constant):
            continue
        if call.args[1].value in _OWN and found.groups(module, call.args[0]) & training.groups:
            raise Unwritable(
                module,
                call,
                "this asks whether the optimizer is an FP16_Optimizer, which it is no longer",
                "ask the flag that turns fp16 on instead, then run again",
            )


def refuse_open(training: Fp16, found: Found, calls: Passes) -> None:
    """Refuse gradients that are put off and meet a step, or anything that reads them, before they are unscaled."""
    graphs = Graphs()
    for module, call, unscales in calls:
        if unscales is not False:
            continue
        function = found.project.function_of(module, call)
        graph = graphs.of(function.scope)
        closers = [
            point
            for other, closer, closes in calls
            if other is module and closes is not False
            for point in graph.at(closer, Kind.CALL)
        ]
        order = feasible(found, graph)
        reads = [c for _, c in _reading(training, found)]
        ends = [p for p in graph.points if p.node in reads and p.kind is Kind.CALL]
        if any(
            found.project.function_of(m, c) is not function for m, c in _reading(training, found)
        ):
            ends += graph.order(False).ends
        for start in graph.at(call, Kind.CALL):
            for point in ends:
                if order.must_pass(start, point, closers):
                    continue
                raise Unwritable(
                    module,
                    point.node if hasattr(point.node, "lineno") else call,
                    "gradients that update_master_grads=False put off may get here without update_master_grads()",
                    "call optimizer.update_master_grads() in front of it, in the function of the backward pass, then run "
                    "again",
                )


def _reading(training: Fp16, found: Found) -> list[tuple[Module, ast.Call]]:
    """Return the calls that step, or clip."""
    own = [
        (module, call)
        for method in ("step", "clip_master_grads")
        for module, call in found.method_calls(method)
        if isinstance(call.func, ast.Attribute)
        and found.groups(module, call.func.value) & training.groups
    ]
    return own + [
        (module, call)
        for module, call in found.clips()
        if call.args and found.owners(module, call.args[0]) & training.networks
    ]


def refuse_gradients(training: Fp16, found: Found, calls: Passes) -> None:
    """Refuse reads of the network's gradients: they are scaled, in fp16, where autocast leaves those of fp32 weights.

    Those of the fused class go into the step, which divides them by the scale as a GradScaler does: a map of them that is
    linear, as a sum over processes, may stay.
    """
    linear = Linear(found.project)
    run = {found.project.function_of(module, call) for module, call, _ in calls}
    for function in run_around(found.project, *run):
        for node in _gradients(function):
            if training.interface.fused and linear.stays(function.module, node):
                continue
            if not _is_of_masters(training, function.module, node.value, found):
                raise Unwritable(
                    function.module,
                    node,
                    f"`{function.module.tree.segment(node)}` is a scaled gradient of fp16 weights here, and of fp32 weights "
                    "natively",
                    "read no gradients, or those of the parameters in optimizer.param_groups with amp.initialize and "
                    "amp.scale_loss, then run again"
                    if training.interface.fused
                    else "read the gradients of the parameters in optimizer.param_groups instead, then run again",
                )


def _gradients(function: Function) -> Iterator[ast.Attribute]:
    tree = function.module.tree
    yield from (n for n in tree.attributes("grad") if tree.scope(n) is function.scope)


def _is_of_masters(
    training: Fp16, module: Module, node: ast.AST, found: Found, depth: int = 0
) -> bool:
    """Tell whether an expression is made of the parameters in ``optimizer.param_groups``.

    Those of the fused class have no gradients; another optimizer has its own.
    """
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr == "param_groups":
            own = found.groups(module, part.value) & training.groups
            return not (training.interface.fused and own)
        if isinstance(part, ast.Name) and depth < _DEEPEST:
            for binding in module.scopes.bound(part):
                value = bound_value(module, binding)
                if value is not None and _is_of_masters(training, module, value, found, depth + 1):
                    return True
    return False


def refuse_clip_of_copies(training: Fp16, found: Found) -> None:
    """Refuse a clip of the network's own gradients, which FP16_Optimizer has copied before."""
    near = beside(found.project, *(wrap.module.path for wrap in training.wraps))
    for module, call in found.clips():
        if module.path not in near or not call.args:
            continue
        if not found.owners(module, call.args[0]) & training.networks:
            continue
        sheet = training.sheets.get(module)
        if sheet is not None and _beside(sheet, call):
            continue
        if training.interface.fused:
            raise Unwritable(
                module,
                call,
                "this clips gradients that are multiplied by the loss scale, and not those that the step takes; natively it "
                "would clip them as they are",
                "give FusedAdam max_grad_norm where clipping is meant, else delete it, then run again",
            )
        raise Unwritable(
            module,
            call,
            "this clips gradients of fp16 weights that FP16_Optimizer has copied already, so it changes nothing; natively "
            "it would",
            "write optimizer.clip_master_grads(max_norm) where clipping is meant, else delete it, then run again",
        )


def _beside(sheet: Sheet, node: ast.AST) -> bool:
    """Tell whether a node stands in the branch of a test that runs without FP16_Optimizer."""
    inside: ast.AST = node
    for up in sheet.tree.ancestors(node):
        if isinstance(up, ast.If) and isinstance(inside, ast.stmt):
            other = up.orelse if inside in up.body else up.body if inside in up.orelse else []
            written = [n for stmt in other for n in ast.walk(stmt)]
            if any(n in sheet.texts for n in written):
                return True
        inside = up
    return False
