"""What O2 and O3 handed out in fp32: losses that are computed of it outside of the networks were fp32, and may not become fp16."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.casts.callables import spelled
from amp_migrate.check.casts.networks import Networks
from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side, differs, staying
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.closure import closure
from amp_migrate.project import Function
from amp_migrate.training.contexts import Context, around, context, is_scale_loss
from amp_migrate.training.forwards.classes import is_of_network
from amp_migrate.training.forwards.outputs import outputs
from amp_migrate.training.origins.walk import handed_in
from amp_migrate.training.types.floats import Kind
from amp_migrate.training.types.known import types_of

_HALVED = "is fp16 now: Apex computed it of what the network handed out in fp32, and its backward begins with the loss scale in fp16:"


def narrowed(
    old: Side, new: Side, claims: Claims, networks: Networks
) -> Iterator[tuple[Key, Difference]]:
    """Yield the losses that surely are fp16 in the new text, and were fp32."""
    if not networks.only_given:
        return
    types = types_of(new.project, new.program.training.losses)
    for before, after, _ in staying(old, new, claims):
        wide = {ast.unparse(loss) for f in before for loss in _scaled(old, f, networks)}
        for function in after if wide else ():
            for call in function.calls:
                loss = _native(call)
                if loss is None or ast.unparse(loss) not in wide:
                    continue
                if any(
                    {held.native for held in types.of(*given)} == {Kind.HALF}
                    and not _is_kept_apart(new, *given)
                    for given in _given(new, function, loss)
                ):
                    yield differs(function, call, f"`{ast.unparse(loss)}` {_HALVED}")


def hands_out(side: Side, networks: Networks, function: Function, node: ast.expr) -> bool:
    """Tell whether a value of the old text is what a network gave that O2 or O3 was given, where they handed out fp32."""
    if not networks.only_given or is_of_network(function) or _is_older(function):
        return False
    made = outputs(side.project, side.program.training.losses, function, node)
    return any(_is_given(side, networks, call) for call in made)


def _is_older(function: Function) -> bool:
    """Tell whether an older interface put networks into fp16 itself, which handed out fp16."""
    return bool(function.module.tree.older.written)


def _is_given(side: Side, networks: Networks, call: ast.Call) -> bool:
    """Tell whether a call runs a network itself that was initialized, or trained."""
    groups = side.program.training.objects.groups
    return bool(groups(side.project.module_of(call), call.func) & networks.groups)


def _scaled(side: Side, function: Function, networks: Networks) -> Iterator[ast.expr]:
    """Yield the losses of Apex in a function that are computed of what given networks handed out, and of no part of one."""
    losses, project = side.program.training.losses, side.project
    for call in function.calls if not _is_older(function) else ():
        if not call.args or not is_scale_loss(project, function.module, call.func):
            continue
        given = _given(side, function, call.args[0])
        calls = {c for each in given for c in losses.calls(*each, cast=True)}
        made = [(project.holder(c), c) for c in calls]
        outside = [(f, c) for f, c in made if not is_of_network(f)]
        run = [c for f, c in outside if spelled(c) in networks.forwards(f)]
        if run and all(_is_given(side, networks, c) for c in run):
            yield call.args[0]


def _native(call: ast.Call) -> ast.expr | None:
    """Return the loss that a call scales for its backward."""
    scales = isinstance(call.func, ast.Attribute) and call.func.attr == "scale"
    return call.args[0] if scales and len(call.args) == 1 else None


def _given(side: Side, function: Function, loss: ast.expr) -> Iterator[tuple[Function, ast.expr]]:
    """Yield what each call hands in for a loss that is a parameter, however far up; the loss itself where it is none."""
    reaching = side.program.training.losses.reaching

    def above(at: tuple[Function, ast.expr]) -> Iterator[tuple[Function, ast.expr]]:
        function, node = at
        held = reaching(function, node) if isinstance(node, ast.Name) else []
        parameters = [value for value in held if isinstance(value, ast.arg)]
        for value in parameters if len(parameters) == len(held) else ():
            for given in handed_in(side.project, function, value.arg):
                if isinstance(given.node, ast.expr):
                    yield given.function, given.node

    yield from (at for at in closure([(function, loss)], above) if not any(above(at)))


def _is_kept_apart(side: Side, function: Function, loss: ast.expr) -> bool:
    """Tell whether something that computes a loss stands in a block without casts."""
    project = side.project
    made = side.program.training.losses.calls(function, loss, cast=False)
    return any(
        context(project, where, node) is Context.NO_CASTS
        for call in made
        for where in (project.module_of(call),)
        for node in around(where, call)
    )
