"""GradScalers that each object makes with itself, for the one optimizer that it is made with and no other object gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.project import Class, Function, Module
from amp_migrate.project.reach import where_set
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.contexts import is_off
from amp_migrate.training.events import Kind

_LOOPS = (
    ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda,
)  # fmt: skip


def kept_apart(program: Program, number: int) -> bool:
    """Tell whether a GradScaler is one of each object of a class: made in its constructor, it steps what that is given."""
    objects = program.training.objects
    made = [(m, c) for m, c in objects.made_scalers if objects.scaler(m, c) == number]
    makers = {program.project.function_of(m, c) for m, c in made if not is_off(c)}
    init = next(iter(makers), None)
    if len(makers) != 1 or init is None or init.cls is None or init.name != "__init__":
        return False
    kept = {_stored(init, c) for m, c in made if not is_off(c)}
    stepped = set(_stepped(program, number, init.cls, kept))
    name = next(iter(stepped), None)
    given = _given(program, init, name) if len(stepped) == 1 and name is not None else None
    return given is not None and _are_apart(program, init, given)


def _stored(init: Function, made: ast.Call) -> str | None:
    """Return the attribute in which a constructor keeps what a call makes."""
    up = init.module.tree.parent(made)
    target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    own = isinstance(target, ast.Attribute) and init.is_receiver(target.value)
    return target.attr if isinstance(target, ast.Attribute) and own else None


def _stepped(
    program: Program, number: int, cls: Class, kept: set[str | None]
) -> Iterator[str | None]:
    """Yield the attributes whose optimizers a GradScaler steps, None for one that is not of the same object."""
    for function, held in program.training.by_function.items():
        for event in (event for events in held.values() for event in events):
            if event.kind is not Kind.STEP or event.scaler != number:
                continue
            named, node = event.named(), event.node
            scaler = node.func if isinstance(node, ast.Call) else None
            scaler = scaler.value if isinstance(scaler, ast.Attribute) else None
            own = [_own(function, cls, part) for part in (scaler, named)]
            yield own[1] if own[0] in kept and own[0] is not None else None


def _own(function: Function, cls: Class, node: ast.expr | None) -> str | None:
    """Return the attribute that an expression reads of the object of a method that objects of a class may have."""
    kin = function.cls is not None and (function.cls in cls.mro() or cls in function.cls.mro())
    if not isinstance(node, ast.Attribute) or not function.is_receiver(node.value):
        return None
    return node.attr if kin else None


def _given(program: Program, init: Function, name: str) -> str | None:
    """Return the parameter of a constructor that alone is ever stored in an attribute, and is bound to nothing else."""
    found: set[str | None] = set()
    for module, node in where_set(program.project, name):
        up = module.tree.parent(node)
        value = up.value if isinstance(up, ast.Assign) and node in up.targets else None
        lone = isinstance(value, ast.Name) and init.is_receiver(node.value)
        if module is not init.module or program.project.function_of(module, node) is not init:
            lone = False
        bound = module.scopes.bound(value) if lone and isinstance(value, ast.Name) else []
        one = len(bound) == 1 and isinstance(bound[0], ast.arg)
        found.add(value.id if one and isinstance(value, ast.Name) else None)
    return found.pop() if len(found) == 1 else None


def _are_apart(program: Program, init: Function, name: str) -> bool:
    """Tell whether every object gets an optimizer of its own, made where it is, and as often."""
    project, objects = program.project, program.training.objects
    told: set[int] = set()
    for call, targets in project.calls.reached.items():
        classes = [target.cls for target in targets if target.cls is not None]
        if not any(init.cls in cls.mro() for cls in classes):
            continue
        if any(cls.method("__init__") is not init for cls in classes):
            return False
        here = project.holder(call)
        argument = project.given(call, init).get(name)
        if argument is None or not isinstance(call, ast.Call):
            return False
        groups = objects.groups(here.module, argument)
        numbers = {o.number for o in objects.optimizers if o.groups & groups}
        made = [
            at
            for o in objects.optimizers
            if o.number in numbers
            for at in objects.results.of(o.groups)
        ]
        if len(numbers) != 1 or told & numbers or len(made) != 1:
            return False
        if not _beside(here, call, *made[0]):
            return False
        told |= numbers
    return bool(told)


def _beside(function: Function, call: ast.Call, module: Module, made: ast.Call) -> bool:
    """Tell whether two calls of a function stand in the same loops."""
    tree = function.module.tree
    if module is not function.module or tree.scope(made) is not tree.scope(call):
        return False
    loops = [[up for up in tree.ancestors(c) if isinstance(up, _LOOPS)] for c in (call, made)]
    return loops[0] == loops[1]
