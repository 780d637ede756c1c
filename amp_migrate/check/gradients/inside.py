"""Steps and reads inside a `scale_loss` block: Apex had scaled gradients there, which only a rule of the run may change."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.apex.disabling import may_disable
from amp_migrate.check.events.claims import INSIDE, MOVED, Claims
from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Key, Side, differs, staying
from amp_migrate.check.events.traces import Difference
from amp_migrate.check.gradients.scaled import is_late
from amp_migrate.facts.paths import argument
from amp_migrate.project import Function, Module, Project
from amp_migrate.protocol.faults import Place
from amp_migrate.training.beliefs import WEIGHTS
from amp_migrate.training.contexts import (
    Context,
    around,
    context,
    in_autocast,
    scales_loss,
    scaling_calls,
)
from amp_migrate.training.events import Kind

_CASTING = (Context.CASTS, Context.NO_CASTS)
_WRITTEN = "writes weights inside an autocast block, which it did not:"
_READ = "read scaled gradients, inside the block of Apex:"
SCALED = "stepped on scaled gradients, inside the block of Apex:"


def stepped_inside(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield the steps of the old text on what a block around them scaled, where the new text has none of its blocks."""
    scaling = scaling_calls(new.project)
    for before, after, _ in staying(old, new, claims):
        if any(call in scaling for f in after for call in f.calls):
            continue
        for function in before:
            for call, label in old.of_kind(function, Does.STEP):
                place = Place(function.module.path, call.lineno)
                if _is_scaled(old, function, call) and not claims.say(INSIDE, place):
                    yield differs(function, call, f"`{label.of}` {SCALED}")


def read_inside(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield what read gradients that a block around it had scaled, where the new text may divide them before."""
    for before, after, _ in staying(old, new, claims):
        true = {ast.unparse(n) for f in after for n in _reads(new, f) if is_late(new, f, n)}
        for function in before if true else ():
            for node in _reads(old, function):
                place = Place(function.module.path, node.lineno)
                told = any(claims.say(code, place) for code in MOVED)
                if not told and _follows_backward(old, function, node):
                    yield differs(function, node, f"`{ast.unparse(node)}` {_READ}")


def written_inside(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield the weights that a function writes by hand inside an autocast block of the new text alone."""
    for before, after, _ in staying(old, new, claims):
        had = [(f, n) for f in before for n in _written(old, f)]
        known = {ast.unparse(n) for f, n in had if in_autocast(old.project, f.module, n)}
        off = {ast.unparse(n) for f, n in had if may_disable(old.project, f.module, n)}
        for function in after:
            for node in _written(new, function):
                if in_autocast(new.project, function.module, node):
                    text = ast.unparse(node)
                    if text not in known and not (text in off and _is_off(new, function, node)):
                        yield differs(function, node, f"`{text}` {_WRITTEN}")


def _written(side: Side, function: Function) -> Iterator[ast.expr]:
    for node, events in side.program.training.of(function).items():
        if isinstance(node, ast.expr) and any(e.kind is Kind.WEIGHT_WRITE for e in events):
            yield node
    for call in function.calls:
        in_place = isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_")
        if in_place and any(
            isinstance(n, ast.Attribute) and n.attr in WEIGHTS for n in _chain(call)
        ):
            yield call


def _chain(call: ast.Call) -> Iterator[ast.expr]:
    """Yield what a method is called on, and what that is a part of."""
    node: ast.expr = call.func
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
        yield node


def _is_off(side: Side, function: Function, node: ast.expr) -> bool:
    """Tell whether the innermost autocast around a node is off."""
    module = function.module
    found = (context(side.project, module, given) for given in around(module, node))
    return next((c for c in found if c in _CASTING), None) is Context.NO_CASTS


def _reads(side: Side, function: Function) -> Iterator[ast.expr]:
    """Yield what reads gradients in a function, by itself or in what it calls."""
    for node, events in side.program.training.of(function).items():
        if isinstance(node, ast.expr) and any(e.kind is Kind.READ_GRAD for e in events):
            yield node
    for call in function.calls:
        run = side.reached(side.project.callees(call))
        held = (events for f in run for events in side.program.training.of(f).values())
        if any(e.kind is Kind.READ_GRAD for events in held for e in events):
            yield call


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


def _follows_backward(side: Side, function: Function, node: ast.expr) -> bool:
    """Tell whether a node stands in a block that scales a loss, behind the backward of it."""
    module = function.module
    if not any(_blocks(side.project, module, node, set())):
        return False
    graph = side.program.graph(function)
    order = graph.order(exceptions=False)
    return any(
        order.may_reach(one, other)
        for call, _ in side.of_kind(function, Does.BACKWARD)
        if any(_blocks(side.project, module, call, set()))
        for one in graph.at(call)
        for other in graph.at(node)
    )


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
    if call in scaling_calls(project) and scales_loss(project, module, call):
        yield module, call
        return
    for function in project.callees(call):
        if function.scope not in asked:
            asked.add(function.scope)
            for inner in function.own_nodes:
                if isinstance(inner, ast.Yield):
                    yield from _blocks(project, function.module, inner, asked)
