"""What `FusedAdam` took until 2019 and takes no longer, or what the clip in front of the step takes the place of."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import is_false, number
from amp_migrate.facts.stand_ins import NOTHING
from amp_migrate.older.found import Found
from amp_migrate.older.fp16.training import Fp16
from amp_migrate.older.fused.clips import write_clips
from amp_migrate.older.fused.makers import fused
from amp_migrate.older.sheet import Sheet
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Module

_SHARED = ("params", "lr", "bias_correction", "betas", "eps")
_PARAMETERS = (
    *_SHARED, "eps_inside_sqrt", "weight_decay", "max_grad_norm", "amsgrad", "use_mt", "amp_scale_adjustment",
)  # fmt: skip
_GONE = ("eps_inside_sqrt", "use_mt", "amp_scale_adjustment")
_CLIP = "max_grad_norm"
_WHY = {False: "which it takes no longer", True: "which is for FP16_Optimizer alone"}


def write_fused(training: Fp16, found: Found) -> None:
    """Write the optimizers that are wrapped as those of today, with clips in front of their steps. Raises `Unwritable`."""
    for part, made in fused(training, found):
        norms = [_norm(part.sheets[module], call, found) for module, call in made]
        given = [norm for norm in norms if norm is not None]
        _refuse_own_norms(part)
        if not given:
            continue
        if len(given) < len(made) or len({ast.unparse(norm) for norm in given}) > 1:
            raise Unwritable(
                *made[0],
                "optimizers that take one step clip by different norms",
                "give each optimizer code of its own, then run again",
            )
        write_clips(part, found, made, given[0])


def _norm(sheet: Sheet, call: ast.Call, found: Found) -> ast.expr | None:
    """Take what goes out of a call, and return the norm that it clips by."""
    module = sheet.module
    given = {k.arg: k.value for k in call.keywords}
    plain = not any(isinstance(a, ast.Starred) for a in call.args) and None not in given
    if not plain or len(call.args) > len(_SHARED) or not set(given) <= set(_PARAMETERS):
        raise Unwritable(
            module,
            call,
            "the arguments of this FusedAdam cannot be read, or are not those of the one that FP16_Optimizer wraps",
            "write out its arguments, those behind `eps` by their names, then run again",
        )
    contrib = (found.project.apex(module, call.func) or "").startswith("apex.contrib.")
    inside = given.get("eps_inside_sqrt")
    if inside is not None and not is_false(inside) and not contrib:
        raise Unwritable(
            module,
            inside,
            "eps_inside_sqrt adds eps in front of the square root, which no optimizer of today does",
            "delete it and look at `eps` again, then run again",
        )
    norm = given.get(_CLIP)
    going = [name for name in (*(() if contrib else _GONE), _CLIP) if name in given]
    clips = norm is not None and not _is_off(norm)
    if going:
        _take_out(sheet, call, going)
        instead = (
            ": clip_grad_norm_ clips each group of parameters by it in front of the step, as FusedAdam did"
            if clips
            else ""
        )
        sheet.say(
            call,
            f"FusedAdam is still part of Apex and stays, without {' and '.join(going)}, {_WHY[contrib]}{instead}",
            migrated=False,
        )
    if not contrib and not is_false(given.get("bias_correction")) and len(call.args) < 3:
        sheet.say(
            call,
            "the FusedAdam that FP16_Optimizer wrapped made eps larger and weight_decay smaller by its bias correction, in the "
            "first thousand steps or so; that of today does not",
            migrated=False,
        )
    return norm if clips else None


def _take_out(sheet: Sheet, call: ast.Call, names: list[str]) -> None:
    """Leave arguments out: in a statement that stays they are marked, in one that is written anew they are not there."""
    statement = sheet.tree.statement(call)
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return) and statement.value is call:
        for keyword in call.keywords:
            if keyword.arg in names:
                sheet.put(keyword.value, NOTHING)
        return
    stays = [sheet.text(a) for a in call.args]
    stays += [f"{k.arg}={sheet.text(k.value)}" for k in call.keywords if k.arg not in names]
    sheet.put(call, f"{sheet.text(call.func)}({', '.join(stays)})")


def _refuse_own_norms(training: Fp16) -> None:
    """Refuse a group of parameters with a norm of its own."""
    for module in dict.fromkeys(wrap.module for wrap in training.wraps):
        for key in _keys(module):
            if isinstance(key, ast.Constant) and key.value == _CLIP:
                raise Unwritable(
                    module,
                    key,
                    "a group of parameters is given a norm of its own, by which FusedAdam clips it",
                    "give one norm to all groups, then run again",
                )


def _keys(module: Module) -> list[ast.expr]:
    """Return what is a key of a group of parameters that is written out, or that something is stored under."""
    written = [[k for k in d.keys if k is not None] for d in module.tree.nodes(ast.Dict)]
    keys = [
        key
        for group in written
        if any(isinstance(k, ast.Constant) and k.value == "params" for k in group)
        for key in group
    ]
    stored = [s.slice for s in module.tree.nodes(ast.Subscript) if not isinstance(s.ctx, ast.Load)]
    return [*keys, *stored]


def _is_off(node: ast.expr) -> bool:
    """Tell whether a norm is a number by which nothing is clipped."""
    value = number(node)
    return value is not None and value <= 0
