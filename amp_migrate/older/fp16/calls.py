"""What is called on an `FP16_Optimizer`, written as blocks of a scaled loss and calls of today's amp."""

from __future__ import annotations

import ast

from amp_migrate.facts.stand_ins import ALIAS, SCALED
from amp_migrate.older.found import Found
from amp_migrate.older.fp16.clips import need_torch, write_clips
from amp_migrate.older.fp16.refused import (
    Passes,
    refuse_asked,
    refuse_clip_of_copies,
    refuse_gradients,
    refuse_open,
)
from amp_migrate.older.fp16.training import Fp16
from amp_migrate.older.interface import ALONE as OF_ONE
from amp_migrate.older.sheet import ALONE, STATE, Sheet
from amp_migrate.older.wraps import named
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Module

_AS_THEY_ARE = frozenset({"step", "param_groups", "state", "state_dict", "load_state_dict"})


def write_calls(training: Fp16, found: Found) -> None:
    """Write what is done with the optimizers."""
    calls: Passes = []
    for module, node in found.project.nodes(ast.Attribute):
        name = training.interface.has.get(node.attr)
        if not found.groups(module, node.value) & training.groups:
            continue
        if name is None:
            if node.attr not in OF_ONE:
                continue
            raise _unknown(module, node)
        called = module.tree.call_of(node)
        sheet = training.sheets[module] if name not in _AS_THEY_ARE else None
        if name == "backward" and called is not None and sheet is not None:
            calls.append(
                (module, called, _backward(sheet, called, node, training.interface.backward))
            )
        elif name == "update_master_grads" and called is not None and sheet is not None:
            statement = _own_statement(sheet, called)
            sheet.drop(statement)
            sheet.say(called, "goes: gradients are those of fp32 weights already")
            calls.append((module, called, None))
        elif name == "clip_master_grads" and called is not None and sheet is not None:
            _clip(sheet, called, node)
        elif name == "zero_grad" and called is not None and sheet is not None:
            _zero_grad(sheet, called, training.interface.fused)
        elif name == "loss_scale" and called is None and sheet is not None:
            load = isinstance(node.ctx, ast.Load)
            sheet.put(node, f"{STATE}.loss_scale()" if load else f"{STATE}._loss_scale")
        elif name == "overflow" and isinstance(node.ctx, ast.Load) and sheet is not None:
            sheet.put(node, f"{STATE}._has_overflow")
        elif name == "optimizer" and called is None and sheet is not None:
            sheet.put(node, sheet.text(node.value))
        elif name == "step" and called is not None and (called.args or called.keywords):
            raise Unwritable(
                module,
                called,
                "a GradScaler cannot step with a closure",
                "write the passes of the closure in front of optimizer.step(), then run again",
            )
        elif name not in _AS_THEY_ARE and name not in ("add_param_group", "defaults"):
            raise _unknown(module, node)
    refuse_asked(training, found)
    refuse_open(training, found, calls)
    refuse_gradients(training, found, calls)
    write_clips(training.sheets, found)
    refuse_clip_of_copies(training, found)


def _unknown(module: Module, node: ast.Attribute) -> Unwritable:
    return Unwritable(
        module,
        node,
        f"`{module.tree.segment(node)}` is known to FP16_Optimizer alone, and the optimizer of torch has nothing like it",
        "delete this use, then run again",
    )


def _own_statement(sheet: Sheet, call: ast.Call) -> ast.stmt:
    statement = sheet.tree.statement(call)
    if (
        isinstance(statement, ast.Expr)
        and statement.value is call
        and sheet.tree.stands_alone(statement)
    ):
        return statement
    raise Unwritable(
        sheet.module, call, "this call shares its lines, or a statement, with something else", ALONE
    )


def _backward(
    sheet: Sheet, call: ast.Call, method: ast.Attribute, parameters: tuple[str, ...]
) -> bool | None:
    """Write a backward pass as a block of a scaled loss; return whether it unscales: None where a run decides."""
    statement = _own_statement(sheet, call)
    given = named(sheet, call, parameters)
    if "loss" not in given:
        raise Unwritable(sheet.module, call, "no loss is given here", ALONE)
    unscales: bool | None = True
    more = ""
    deferred = given.get("update_master_grads")
    if isinstance(deferred, ast.Constant):
        unscales = bool(deferred.value)
    elif deferred is not None:
        unscales = None
        more = f", delay_unscale=not ({sheet.text(deferred)})"
    retained = given.get("retain_graph")
    kept = f"retain_graph={sheet.text(retained)}" if retained is not None else ""
    loss, optimizer = sheet.text(given["loss"]), sheet.text(method.value)
    block = (
        f"with {ALIAS}.scale_loss({loss}, {optimizer}{more}) as {SCALED}: {SCALED}.backward({kept})"
    )
    sheet.put(statement, block)
    return unscales


def _clip(sheet: Sheet, call: ast.Call, method: ast.Attribute) -> None:
    given = [sheet.text(a) for a in call.args]
    given += [f"{k.arg}={sheet.text(k.value)}" for k in call.keywords if k.arg]
    need_torch(sheet, call)
    optimizer = sheet.text(method.value)
    sheet.put(
        call,
        f"torch.nn.utils.clip_grad_norm_({ALIAS}.master_params({optimizer}), {', '.join(given)})",
    )
    if not isinstance(sheet.tree.parent(call), ast.Expr):
        sheet.say(
            call,
            "clip_master_grads gave -1 after an overflow, where clip_grad_norm_ gives a norm that is not finite",
            migrated=False,
        )


def _zero_grad(sheet: Sheet, call: ast.Call, fused: bool) -> None:
    given = named(sheet, call, ("set_grads_to_None",)).get("set_grads_to_None")
    if given is None:
        return
    if not fused:
        sheet.put(call, f"{sheet.text(call.func)}(set_to_none={sheet.text(given)})")
    elif isinstance(given, ast.Constant) and given.value:
        sheet.put(call, f"{sheet.text(call.func)}()")
    else:
        raise Unwritable(
            sheet.module,
            call,
            "zero_grad() of FusedAdam takes no argument, and sets gradients to None",
            "leave out set_grads_to_None, then run again",
        )
