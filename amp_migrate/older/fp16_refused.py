"""What a program does with an `FP16_Optimizer`, or around it, that today's amp has no way to say."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.flow.cfg.build import Graphs
from amp_migrate.flow.cfg.points import Kind
from amp_migrate.older.found import Found
from amp_migrate.older.fp16_training import Fp16
from amp_migrate.older.sheet import Sheet, Unwritable
from amp_migrate.project import Module

Passes = list[tuple[Module, ast.Call, bool | None]]
"""Backward passes, and whether they unscale: None where a run decides."""

_OWN = frozenset({"backward", "update_master_grads", "clip_master_grads", "loss_scale", "overflow"})


def refuse_other_uses(training: Fp16, found: Found) -> None:
    """Refuse a class that is asked about, and helpers of fp16_utils that work on the same objects."""
    modules = {wrap.module for wrap in training.wraps}
    for module, node, name in found.fp16_uses():
        call = module.tree.parent(node)
        called = isinstance(call, ast.Call) and call.func is node
        if name == "FP16_Optimizer" and not called and module in modules:
            raise Unwritable(
                module,
                node,
                "FP16_Optimizer is used as a value here, and after the migration there is no such class",
                "ask the flag that turns fp16 on instead, then run again",
            )
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
    for module in found.project.modules.values():
        for call in module.tree.nodes(ast.Call):
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
        order = graph.order(False)
        starts = graph.at(call, Kind.CALL)
        reads = list(_reading(training, found, module, graph))
        for point in (p for p in graph.points if p.node in reads and p.kind is Kind.CALL):
            if any(
                order.may_reach(a, point) and not order.must_pass(a, point, closers) for a in starts
            ):
                raise Unwritable(
                    module,
                    point.node,
                    "gradients that update_master_grads=False put off may get here without update_master_grads()",
                    "call optimizer.update_master_grads() in front of it, in the same function, then run again",
                )
        if not closers or _gradients(function.scope):
            raise Unwritable(
                module,
                call,
                "what becomes of gradients that update_master_grads=False puts off is not seen in this function",
                "call optimizer.update_master_grads() behind the last backward pass in the same function, before "
                "gradients are read, then run again",
            )


def _reading(training: Fp16, found: Found, module: Module, graph: object) -> Iterator[ast.Call]:
    """Yield the calls of a file that step, or clip."""
    for call in module.tree.nodes(ast.Call):
        if not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr in ("step", "clip_master_grads"):
            if found.groups(module, call.func.value) & training.groups:
                yield call
        elif call.func.attr.startswith("clip_grad_"):
            yield call


def _gradients(scope: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(scope))


def refuse_clip_of_copies(training: Fp16, found: Found) -> None:
    """Refuse a clip of the network's own gradients, which FP16_Optimizer has copied before."""
    for module, call in (
        *found.method_calls("clip_grad_norm_"),
        *found.method_calls("clip_grad_value_"),
    ):
        if not call.args or not found.owners(module, call.args[0]) & training.networks:
            continue
        sheet = training.sheets.get(module)
        if sheet is None or _beside(sheet, call):
            continue
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
