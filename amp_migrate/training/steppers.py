"""What has a `step()`: optimizers, and the schedules that set their learning rates."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import path
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.reach import reachable, upwards
from amp_migrate.training.beliefs import (
    BESIDE_OPTIMIZERS,
    ENDS_AS_SCHEDULE,
    MAKES_SCHEDULE,
    MODULE_OF_SCHEDULES,
    OPTIMIZER_CLASS,
    OPTIMIZER_NAME,
    SCHEDULE_NAME,
)

_OPTIMIZER = "torch.optim."


def makes_optimizer(name: str) -> bool:
    """Tell whether a dotted name stands for a class of optimizers, of torch or another library."""
    if name.startswith("torch."):
        return name.startswith(_OPTIMIZER) and not name.startswith(BESIDE_OPTIMIZERS)
    return bool(OPTIMIZER_CLASS.search(name.rpartition(".")[2]))


def makes_schedule(name: str) -> bool:
    """Tell whether a dotted name stands for what sets learning rates."""
    module, _, last = name.rpartition(".")
    if name.startswith(BESIDE_OPTIMIZERS) or MAKES_SCHEDULE.search(last):
        return True
    if ENDS_AS_SCHEDULE.search(last):
        return True
    classes = last[:1].isupper() and not OPTIMIZER_NAME.search(last)
    return classes and any(map(MODULE_OF_SCHEDULES.search, module.split(".")))


def is_optimizer_class(cls: Class) -> bool:
    """Tell whether a class is an optimizer: one that has a class of torch as its base."""
    return any(map(makes_optimizer, cls.externals()))


def has_groups(cls: Class) -> bool:
    """Tell whether the objects of a class have parameter groups, which a GradScaler asks an optimizer for."""
    if not {"param_groups", "__getattr__", "__getattribute__"}.isdisjoint(cls.methods):
        return True
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "param_groups"
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        for node in ast.walk(cls.node)
    )


def is_schedule(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an object sets learning rates: by what made it, and by its name where nothing in sight did."""
    known = _known(project, module, node, makes_schedule)
    return bool(SCHEDULE_NAME.search(path(node) or "")) if known is None else known


def is_optimizer(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an object is an optimizer: by what made it, and by its name where nothing in sight did."""
    known = _known(project, module, node, makes_optimizer)
    return bool(OPTIMIZER_NAME.search(path(node) or "")) if known is None else known


def may_train(project: Project, function: Function) -> bool:
    """Tell whether the programs that come to a function run a backward pass or step an optimizer.

    What comes to it out of sight, or imports its file, may run whatever else of that file nothing in sight calls.
    """
    above = upwards(project, function)
    if function.node is None or any(f.node is not None and not project.callers(f) for f in above):
        above |= {f for f in function.module.functions.values() if not project.callers(f)}
    return any(_trains(project, f) for f in closure(above, partial(_runs, project)))


def _runs(project: Project, function: Function) -> set[Function]:
    """Return what a function runs, and all methods of objects that it makes: they may be called in ways that are not seen."""
    calls = function.calls
    made = {cls for call in calls for cls in project.constructed(call)}
    methods = {m for cls in made for base in cls.mro() for m in base.methods.values()}
    return methods | reachable(project, function)


def _trains(project: Project, function: Function) -> bool:
    return any(
        call.func.attr == "backward"
        or (call.func.attr == "step" and is_optimizer(project, function.module, call.func.value))
        for call in function.calls
        if isinstance(call.func, ast.Attribute)
    )


def _known(
    project: Project, module: Module, node: ast.expr, makes: Callable[[str], bool]
) -> bool | None:
    """Tell whether what made an object, or a base of its class, is of a kind; None where it may be of any."""
    classes = project.instance_classes(module, node)
    names = [*project.values.made_by(module, node), *(b for c in classes for b in c.externals())]
    if any(map(makes, names)):
        return True
    return False if any(makes_optimizer(n) or makes_schedule(n) for n in names) else None
