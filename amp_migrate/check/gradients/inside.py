"""Steps inside a `scale_loss` block: Apex took them on scaled gradients, which only a rule of the run may change."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.events.claims import INSIDE, Claims
from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Key, Side, changed, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.paths import argument, tail
from amp_migrate.project import Function, Module, Project
from amp_migrate.protocol.faults import Place
from amp_migrate.training.contexts import around, scales_loss

SCALED = "stepped on scaled gradients, inside the block of Apex:"


def stepped_inside(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield the steps of the old text on what a block around them scaled, where the new text has none of its blocks."""
    for name, _ in changed(old, new):
        if any(map(claims.drops, old.functions[name])):
            continue
        if any(_contexts_of(f) & {"scale_loss"} for f in new.functions[name]):
            continue
        for function in old.functions[name]:
            for call, label in old.of_kind(function, Does.STEP):
                place = Place(function.module.path, call.lineno)
                if _is_scaled(old, function, call) and not claims.say(INSIDE, place):
                    yield differs(function, call, f"`{label.of}` {SCALED}")


def _contexts_of(function: Function) -> set[str]:
    return {tail(n) for n in function.calls}


def _is_scaled(side: Side, function: Function, step: ast.Call) -> bool:
    """Tell whether a block around a step scales the gradients of its optimizer, as far as that is known."""
    groups = side.program.training.objects.groups
    module = function.module
    stepped = groups(module, step.func.value) if isinstance(step.func, ast.Attribute) else None
    for where, block in _blocks(side.project, module, step, set()):
        named = argument(block, "optimizers", 1)
        parts = named.elts if isinstance(named, ast.List) else [named] if named is not None else []
        known = [groups(where, part) for part in parts]
        if not stepped or not all(known) or any(stepped & held for held in known):
            return True
    return False


def _blocks(
    project: Project, module: Module, node: ast.AST, asked: set[ast.AST]
) -> Iterator[tuple[Module, ast.Call]]:
    """Yield the `scale_loss` blocks around a node of a function, those that generators enter around their yield included."""
    for given in around(module, node):
        if isinstance(given, ast.Call):
            yield from _entered_by(project, module, given, asked)


def _entered_by(
    project: Project, module: Module, call: ast.Call, asked: set[ast.AST]
) -> Iterator[tuple[Module, ast.Call]]:
    if tail(call) == "scale_loss" and scales_loss(project, module, call):
        yield module, call
        return
    for function in project.callees(call):
        if function.scope not in asked:
            asked.add(function.scope)
            for inner in function.own_nodes:
                if isinstance(inner, ast.Yield):
                    yield from _blocks(project, function.module, inner, asked)
