"""Objects that a GradScaler is given as optimizers, and that have none of the groups of parameters which it goes through."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.project import Class, Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.faults import Breach, Fault, Place
from amp_migrate.training.events import Kind
from amp_migrate.training.steppers import has_groups

_ASKING = (Kind.STEP, Kind.UNSCALE)


def ungrouped(program: Program) -> Iterator[Fault]:
    """Yield the calls of GradScalers that raise, as what they are given is no optimizer: it only steps one."""
    for function, held in program.training.by_function.items():
        for node, events in held.items():
            asking = (e.named() for e in events if e.kind in _ASKING)
            if any(given is not None and _lacks(program, function, given) for given in asking):
                place = Place(function.module.path, getattr(node, "lineno", 1))
                yield Fault(Breach.UNGROUPED, place, (place,))


def _lacks(program: Program, function: Function, given: ast.expr) -> bool:
    """Tell whether an expression holds an object of a class without groups, on some way or on all that are known."""
    project = program.project
    if isinstance(given, ast.Name):
        held = program.training.losses.reaching(function, given)
        made = [project.constructed(value) for value in held if isinstance(value, ast.Call)]
        return any(classes and all(map(_is_bare, classes)) for classes in made)
    classes = project.instance_classes(function.module, given)
    known = project.values.made_by(function.module, given)
    return bool(classes) and not known and all(map(_is_bare, classes))


def _is_bare(cls: Class) -> bool:
    """Tell whether objects of a class have no groups of parameters, as far as all of its bases are seen."""
    outside = {name.rpartition(".")[2] for name in cls.externals()} - {"object", "ABC"}
    return not outside and not any(map(has_groups, cls.mro()))
