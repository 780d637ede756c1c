"""The clip of each group of parameters in front of a step, which FusedAdam made a part of the step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.options import number
from amp_migrate.older.found import Found
from amp_migrate.older.fp16.clips import need_torch
from amp_migrate.older.fp16.training import Fp16
from amp_migrate.older.fused.makers import Made, others
from amp_migrate.older.fused.readable import readable
from amp_migrate.older.sheet import ALONE, GROUP
from amp_migrate.older.wraps import Wrap
from amp_migrate.project import Module
from amp_migrate.unit.cannot import Unwritable


def write_clips(training: Fp16, found: Found, made: list[Made], norm: ast.expr) -> None:
    """Write a clip in front of each step that FusedAdam takes. Raises `Unwritable`."""
    steps = list(_steps(training, found, made))
    if not steps:
        raise Unwritable(
            *made[0],
            "this FusedAdam clips in its step, and where it steps is not seen",
            "call its step() where it is known by a name, then run again",
        )
    for module, step, receiver in steps:
        test: ast.expr | None = None
        if others(training, found, module, receiver, made):
            test = _test(training, module, step)
            if not readable(found, test, training.wraps[0].module, step, module):
                raise _unknown(module, step)
        if not readable(found, norm, made[0][0], step, module):
            raise Unwritable(
                module,
                step,
                f"FusedAdam clips by `{ast.unparse(norm)}` in this step, and what that was is not known here",
                "keep the norm in an attribute that nothing sets later, or write it as a number, then run again",
            )
        inside = _inside(module, step, test)
        if inside is not False:
            _write(training, module, step, norm, None if inside else test)


def _steps(
    training: Fp16, found: Found, made: list[Made]
) -> Iterator[tuple[Module, ast.Call, ast.expr]]:
    """Yield the steps of the optimizers that are wrapped, with what they are called on."""
    calls = {call for _, call in made}
    for module, step in found.method_calls("step"):
        if not isinstance(step.func, ast.Attribute):
            continue
        receiver = step.func.value
        own = found.groups(module, receiver) & training.groups
        if own or any(optimizer.call in calls for optimizer in found.made_with(module, receiver)):
            yield module, step, receiver


def _write(
    training: Fp16, module: Module, step: ast.Call, norm: ast.expr, test: ast.expr | None
) -> None:
    sheet = training.sheets[module]
    statement = sheet.tree.statement(step)
    assert isinstance(step.func, ast.Attribute)
    if (
        not isinstance(statement, ast.Expr)
        or statement.value is not step
        or not sheet.whole(statement)
    ):
        raise Unwritable(module, step, "a clip has to stand in front of this step", ALONE)
    need_torch(sheet, step)
    optimizer = sheet.text(step.func.value)
    clip = f'torch.nn.utils.clip_grad_norm_({GROUP}["params"], {ast.unparse(norm)})'
    asked = [] if test is None else [test]
    if number(norm) is None:
        asked.append(ast.Compare(norm, [ast.Gt()], [ast.Constant(0)]))
    whole = ast.BoolOp(ast.And(), asked) if len(asked) > 1 else next(iter(asked), None)
    only = "" if whole is None else f" if {ast.unparse(whole)}"
    loop = f"[{clip} for {GROUP} in {optimizer}.param_groups{only}]"
    sheet.put(statement, f"{loop}; {sheet.line(statement)}")


def _test(training: Fp16, module: Module, step: ast.Call) -> ast.expr:
    """Return what is asked where the optimizer is wrapped."""
    around = [_around(wrap, module, step) for wrap in training.wraps]
    tests = {ast.unparse(test): test for test in around if test is not None}
    if len(tests) != 1 or None in around:
        raise _unknown(module, step)
    return next(iter(tests.values()))


def _around(wrap: Wrap, module: Module, step: ast.Call) -> ast.expr | None:
    """Return the one test around a call that wraps, but for those that chose between two ways to wrap, or hold the step."""
    tree = wrap.module.tree
    shared = {
        stmt
        for up in (module.tree.ancestors(step) if module is wrap.module else ())
        if isinstance(up, ast.If)
        for stmt in up.body
    }
    inner: ast.AST = wrap.statement
    tests: list[ast.expr] = []
    for up in tree.ancestors(wrap.statement):
        if isinstance(up, ast.If):
            wraps_anyway = up.orelse and _only_wraps(up)
            if inner not in up.body and not wraps_anyway:
                return None
            if not wraps_anyway and inner not in shared:
                tests.append(up.test)
        inner = up
    return tests[0] if len(tests) == 1 else None


def _only_wraps(choice: ast.If) -> bool:
    """Tell whether both branches of a test assign a call of one class to one name."""
    branches = [branch[0] for branch in (choice.body, choice.orelse) if len(branch) == 1]
    assigned = [s for s in branches if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)]
    calls = [s.value.func for s in assigned if isinstance(s.value, ast.Call)]
    return len(assigned) == 2 and len({ast.unparse(c) for c in calls}) == 1


def _inside(module: Module, step: ast.Call, test: ast.expr | None) -> bool | None:
    """Tell whether a step stands where a test held, or where it did not; None where it is not asked around it."""
    inner: ast.AST = step
    for up in module.tree.ancestors(step):
        if (
            isinstance(up, ast.If)
            and test is not None
            and ast.unparse(up.test) == ast.unparse(test)
        ):
            return inner in up.body if inner in (*up.body, *up.orelse) else None
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return None
        inner = up
    return None


def _unknown(module: Module, step: ast.Call) -> Unwritable:
    return Unwritable(
        module,
        step,
        "this step is that of a FusedAdam, which clips, or of another optimizer, and which of them it is is not known here",
        "ask `if args.fp16:` of one flag where FP16_Optimizer is called and keep that flag where the step can read it, then "
        "run again",
    )
