"""Steps inside larger statements: what they return is kept, and `update()` follows them."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import all_given
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Function, Project
from amp_migrate.training.origins.meant import meant
from amp_migrate.training.steps import Step

_NAMES = ("result", "stepped", "step_result")
_FOLLOWED = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Assert)
_SOMETIMES = (ast.IfExp, ast.BoolOp)


def returned(step: Step) -> ast.Return | None:
    """Return the statement that returns what a step gives, or something made of it."""
    statement = step.tree.statement(step.call)
    return statement if isinstance(statement, ast.Return) else None


def refuse_within(step: Step) -> None:
    """Raise `Cannot` where a step stands in an expression that may leave it out, or that a statement goes on from."""
    inner: ast.AST = step.call
    for up in step.tree.ancestors(step.call):
        if isinstance(up, ast.stmt):
            if isinstance(up, _FOLLOWED):
                return
            raise _cannot(step, "a test or the head of a block")
        first = isinstance(up, ast.BoolOp) and up.values[0] is inner
        first = first or (isinstance(up, ast.IfExp) and up.test is inner)
        if isinstance(up, _SOMETIMES) and not first:
            raise _cannot(step, "an expression that does not always come to it")
        if isinstance(up, ast.Lambda | ast.Yield | ast.YieldFrom | ast.GeneratorExp):
            raise _cannot(step, "an expression that runs at another time than its statement")
        inner = up


def is_given_none(project: Project, step: Step) -> bool:
    """Tell whether all that a step is given is None, as the ``closure=None`` of a wrapper that nobody gives one."""
    given = all_given(step.call)
    if len(given) != 1 or any(project.escapes(step.function)):
        return False
    values = [v for v in meant(project, step.module, given[0]) if v is not None]
    return bool(values) and all(map(is_none, values))


def _cannot(step: Step, where: str) -> Cannot:
    return Cannot(
        "AMP905",
        *step.at,
        f"{step.text}.step() stands in {where}, and scaler.update() has to follow it whenever it runs",
        f"write {step.text}.step() as a statement of its own, under an `if` where it is not always taken, then run again",
    )


def name_for_result(function: Function) -> str:
    """Return a name that a function does not use, for what it returns."""
    taken = {node.id for node in function.own_nodes if isinstance(node, ast.Name)}
    taken |= set(function.parameters.names)
    return next((name for name in _NAMES if name not in taken), "returned_by_step")
