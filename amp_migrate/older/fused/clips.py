"""The clip of each group of parameters in front of a step, which FusedAdam made a part of the step."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import number
from amp_migrate.facts.paths import same
from amp_migrate.facts.stand_ins import GROUP
from amp_migrate.flow import Graphs, Kind
from amp_migrate.older.feasible import feasible
from amp_migrate.older.found import Found
from amp_migrate.older.fp16.clips import need_torch
from amp_migrate.older.fp16.training import Fp16
from amp_migrate.older.fused.makers import Made, others, steps_of
from amp_migrate.older.fused.readable import readable
from amp_migrate.older.sheet import ALONE
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Module


def write_clips(training: Fp16, found: Found, made: list[Made], norm: ast.expr) -> None:
    """Write a clip in front of each step that FusedAdam takes. Raises `Unwritable`."""
    steps = steps_of(training, found, made)
    if not steps:
        raise Unwritable(
            *made[0],
            "this FusedAdam clips in its step, and where it steps is not seen",
            "call its step() where it is known by a name, then run again",
        )
    for module, step, receiver in steps:
        tests: list[ast.expr] | None = []
        beside = others(training, found, module, receiver, made)
        if beside:
            tests = _condition(training, found, module, step, beside)
        if tests is None:
            continue
        limit = readable(found, norm, made[0][0], step, module)
        if limit is None:
            raise Unwritable(
                module,
                step,
                f"FusedAdam clips by `{ast.unparse(norm)}` in this step, and what that was is not known here",
                "keep the norm in an attribute that nothing sets later, or write it as a number, then run again",
            )
        _write(training, module, step, limit, tests)


def _write(
    training: Fp16, module: Module, step: ast.Call, norm: ast.expr, tests: list[ast.expr]
) -> None:
    sheet = training.sheets[module]
    statement = sheet.tree.statement(step)
    assert isinstance(step.func, ast.Attribute)
    if (
        not isinstance(statement, ast.Expr)
        or statement.value is not step
        or not sheet.tree.stands_alone(statement)
    ):
        raise Unwritable(module, step, "a clip has to stand in front of this step", ALONE)
    need_torch(sheet, step)
    optimizer = sheet.text(step.func.value)
    clip = f'torch.nn.utils.clip_grad_norm_({GROUP}["params"], {ast.unparse(norm)})'
    asked = [*tests]
    if number(norm) is None:
        asked.append(ast.Compare(norm, [ast.Gt()], [ast.Constant(0)]))
    whole = ast.BoolOp(ast.And(), asked) if len(asked) > 1 else next(iter(asked), None)
    only = "" if whole is None else f" if {ast.unparse(whole)}"
    loop = f"[{clip} for {GROUP} in {optimizer}.param_groups{only}]"
    sheet.put(statement, f"{loop}; {sheet.line(statement)}")


def _condition(
    training: Fp16, found: Found, module: Module, step: ast.Call, beside: list[Made]
) -> list[ast.expr] | None:
    """Return what holds at a step where it is that of the optimizers that are wrapped; None where it never is."""
    around = [_asked(wrap.module, wrap.statement) for wrap in training.wraps]
    here = _asked(module, step)
    telling = [
        one
        for one in around[0]
        if all(one in asked for asked in around)
        and any(_comes_out(training, found, one, other) for other in beside)
    ]
    if not all(any(_comes_out(training, found, one, other) for one in telling) for other in beside):
        raise _unknown(module, step)
    left: list[ast.expr] = []
    for asked in telling:
        if asked in here and around[0][asked] is here[asked]:
            continue
        spelled = [
            readable(found, tests[asked], wrap.module, step, module)
            for wrap, tests in zip(training.wraps, around, strict=True)
        ]
        told = spelled[0]
        if told is None or not all(each is not None and same(each, told) for each in spelled):
            raise _unknown(module, step)
        text, holds = ast.unparse(told), asked[1]
        if (text, not holds) in here:
            return None
        if (text, holds) not in here:
            left.append(told if holds else ast.UnaryOp(ast.Not(), told))
    return left


def _comes_out(training: Fp16, found: Found, asked: tuple[str, bool], other: Made) -> bool:
    """Tell whether a test came out otherwise wherever another optimizer is made than where its function wraps one."""
    function = found.project.function_of(*other)
    own = [w for w in training.wraps if found.project.function_of(w.module, w.call) is function]
    if not own:
        return False
    test = _asked(own[0].module, own[0].statement)[asked]
    text, holds = asked
    if _asked(*other).get((text, not holds)) is test:
        return True
    graph = Graphs().of(function.scope)
    paths = feasible(found, graph)
    points = graph.at(other[1], Kind.CALL)
    return all(paths.evaluate(point, test) is (not holds) for point in points)


def _asked(module: Module, node: ast.AST) -> dict[tuple[str, bool], ast.expr]:
    """Return the tests around a node and how they come out."""
    result: dict[tuple[str, bool], ast.expr] = {}
    for up, holds in module.tree.sides(node):
        test = up.test
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, holds = test.operand, not holds
        result[ast.unparse(test), holds] = test
    return result


def _unknown(module: Module, step: ast.Call) -> Unwritable:
    return Unwritable(
        module,
        step,
        "this step is that of a FusedAdam, which clips, or of another optimizer, and which of them it is is not known here",
        "ask `if args.fp16:` of one flag where FP16_Optimizer is called and keep that flag where the step can read it, then "
        "run again",
    )
