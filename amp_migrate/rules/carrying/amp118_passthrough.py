"""A function that only called Apex goes once its callers use the GradScaler, and so does another name of Apex.

## What it does
Reads calls of a function that hands all its arguments on to `apex.amp` as calls of Apex itself, and removes
the function when nothing else uses it. The same goes for what reaches Apex by a local name, an entry of a
dictionary or list, or `functools.partial`, and for arguments that are unpacked with `*` and `**`: where the code
says what they hold at the call, that is read as if it were written there, and what nothing reads then is removed.
A `with` that enters `amp.scale_loss` or, without AMP, `nullcontext(loss)` is read as one that enters `amp.scale_loss`,
and so is a stack that enters it under a flag where the loss is taken as it is without.
Where it is needed, a lambda that trains, bound to a local name or one of the file, is written as the function it is: an
expression has no room for `scaler.update()`.

## Why
Projects that also ran without Apex hid it behind `amp_support.scale_loss(*args, **kwargs)`. With native AMP
there is nothing to hide.

## Example
    def scale_loss(*args, **kwargs):
        return amp.scale_loss(*args, **kwargs)

## Use instead
    (nothing)

## Safety
Faithful.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.passthrough import target
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.modules.offered import reads, takers
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, Drop, DropImportedName, Edit, Finding, Status
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import reachable, upwards
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.source.span import Span
from amp_migrate.training.gradients.used import clips

RULE = Rule(
    "AMP118", "functions and names that only lead to Apex go with it", Safety.FAITHFUL, order=98
)


def decide(context: Context) -> Iterator[Decision]:
    """Drop the functions of the unit that hand their arguments on to Apex."""
    dropped: set[Function] = set()
    for site in context.unit.of(Kind.HANDED_ON):
        message = f"{site.function.name}() goes: its callers use native AMP"
        found = decision(RULE, Status.MIGRATED, site.module, site.node, message)
        if site.function not in dropped:
            _refuse_used(context, site)
            dropped.add(site.function)
            found.edits += _gone(context, site.function)
        yield found
    yield from _respelt(context)
    for helper in _only_used_by(context, dropped):
        message = f"{helper.name}() stood in for Apex where it was missing"
        found = decision(RULE, Status.ROUTINE, helper.module, _node(helper), message)
        found.edits += _gone(context, helper)
        yield found


def _gone(context: Context, function: Function) -> Iterator[tuple[str, Edit]]:
    """Yield the edits that remove a function, and the imports by which other files only offer it."""
    yield function.module.path, Drop(function.module.tree.span(_node(function)))
    project = context.unit.project
    modules = project.modules.values()
    for module, statement, alias in takers(modules, project.lookup, function.module, function.name):
        if not reads(module, alias.asname or alias.name):
            yield module.path, DropImportedName(module.tree.span(statement), (alias.name,))


def _respelt(context: Context) -> Iterator[Decision]:
    """Drop what held Apex, or its arguments, for calls that were read as plain ones."""
    for module in context.unit.modules:
        for respelt in module.tree.respelt:
            sites = (s for s in context.unit.sites if s.module is module)
            site = next((s for s in sites if s.span[:2] == respelt.place), None)
            edits: list[Edit] = [Drop(span) for span in respelt.unused]
            if site is not None:
                message = f"is read as a call of {site.kind.value}"
                yield decision(RULE, Status.ROUTINE, module, site.node, message, edits)
            elif respelt.named:
                yield from _function(context, module, respelt.place)
            elif respelt.asks:
                message = "a test for what Apex leaves on an optimizer, which decides nothing"
                finding = Finding(
                    module.path,
                    Span(*respelt.place, *respelt.place),
                    RULE.code,
                    Status.ROUTINE,
                    message,
                )
                yield Decision(finding, [(module.path, edit) for edit in edits])


def _function(context: Context, module: Module, place: tuple[int, int]) -> Iterator[Decision]:
    """Tell of a lambda that it is a function now, where the unit steps or clips in it."""
    for node, function in module.functions.items():
        if not isinstance(node, ast.FunctionDef) or module.tree.span(node)[:2] != place:
            continue
        scaled = {call for block in context.scaled.values() for call in block.reached}
        trains = _trains_in(context.unit, function) or not scaled.isdisjoint(function.own_nodes)
        if trains or _computes(context.unit, function):
            message = f"the lambda {function.name} becomes a function: a lambda has no room for what native AMP needs"
            yield decision(RULE, Status.ROUTINE, module, node, message)


def _trains_in(unit: Unit, function: Function) -> bool:
    """Tell whether a unit trains in a function, or in what that calls, or has its gradients looked at there."""
    trains = {*unit.functions, *unit.clip_helpers}
    run = reachable(unit.project, function)
    if trains & run:
        return True
    reads = any(_reads(unit.project, part, node) for part in run for node in part.own_nodes)
    return reads and bool(trains & upwards(unit.project, function))


def _computes(unit: Unit, function: Function) -> bool:
    """Tell whether a function runs where a unit computes its losses."""
    return any(function in unit.project.callees(call) for _, call in unit.trained_calls())


def _reads(project: Project, function: Function, node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "grad"
    return isinstance(node, ast.Call) and clips(project, function.module, node)


def _node(function: Function) -> ast.stmt:
    if function.node is None:
        raise ValueError("module-level code is no function")
    return function.node


def _refuse_used(context: Context, site: Site) -> None:
    project = context.unit.project
    calls = project.callers(site.function)
    for user, place, _ in project.escapes(site.function):
        raise Cannot(
            "AMP909",
            user.module,
            place,
            f"{site.function.name}(), which calls Apex ({site.place}), is used as a value here",
            f"call {site.function.name}() by its name here, then run again",
            (site.place,),
        )
    for call in calls:
        if target(project, call.call) is None:
            raise Cannot(
                "AMP909",
                *call.function.at(call.call),
                f"this call may reach {site.function.name}(), which calls Apex ({site.place}), or another function",
                f"let this call reach {site.function.name}() alone, then run again",
                (site.place,),
            )


def _only_used_by(context: Context, dropped: set[Function]) -> Iterator[Function]:
    """Yield the functions beside dropped ones that only those called."""
    project = context.unit.project
    for module in dict.fromkeys(f.module for f in dropped):
        for function in module.functions.values():
            if function.node is None or function.cls is not None or function in dropped:
                continue
            calls = project.callers(function)
            if (
                calls
                and all(c.function in dropped for c in calls)
                and not project.escapes(function)
            ):
                yield function
