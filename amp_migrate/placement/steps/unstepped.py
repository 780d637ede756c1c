"""Units that scale gradients and have no step in sight, or the other way round."""

from __future__ import annotations

import ast
from pathlib import PurePath

from amp_migrate.apex.apart import elements
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.paths import tail
from amp_migrate.placement.finding.alternatives import is_alternative
from amp_migrate.placement.finding.optimizers import Optimizers
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.later import Later
from amp_migrate.placement.reads.held import is_from_before, methods_run
from amp_migrate.plan.cannot import Cannot, spoken
from amp_migrate.project import Function, Module
from amp_migrate.project.order import key
from amp_migrate.project.reach import reachable
from amp_migrate.project.rounds import runs_before
from amp_migrate.training.steppers import is_optimizer, is_schedule
from amp_migrate.training.steps import Backward


def refuse_unstepped(unit: Unit) -> None:
    """A unit that scales gradients but whose step is out of sight would train on scaled gradients."""
    _refuse_held(unit)
    if unit.steps:
        _refuse_steps_alone(unit)
        return
    for backward in unit.live_backwards():  # the scaled one beside it says what is to be stepped
        raise _unstepped(unit, next((b for b in unit.backwards if b.scaled), backward))
    for site in unit.of(Kind.INITIALIZE):
        optimizers = elements(unit.options[site].arguments.get("optimizers"))
        if optimizers and not unit.options[site].idle:
            if unit.backwards:
                raise _unstepped(unit, unit.backwards[0])
            raise _untrained(unit, site, optimizers)


def _refuse_held(unit: Unit) -> None:
    """A step by what holds the methods of several optimizers, or is handed one, has no name for what a GradScaler steps."""
    optimizers, found = Optimizers(unit), {step.call for step in unit.steps}
    begun = [Later(unit.project, (s.function, s.node)) for s in unit.of(Kind.INITIALIZE)]
    held = [(m, c) for m, c in unit.calls() if c in unit.project.values.methods_called]
    for module, call in sorted(held, key=lambda item: (item[0].path, key(item[1]))):
        function = unit.project.function_of(module, call)
        early = bool(begun) and all(later.precedes(function, call) for later in begun)
        own = [
            method
            for method in methods_run(unit, module, call)
            if method.node.attr == "step" and call not in found
            if optimizers.has(method.module, unit.project.holder(method.node), method.node.value)
        ]
        if not own or early or call in unit.gone or is_alternative(unit, function):
            continue
        names = list(dict.fromkeys(m.module.tree.segment(m.node.value) for m in own))
        step, what = module.tree.segment(call), " or ".join(names)
        message = f"`{step}` steps {what} by what holds the method, and a GradScaler has to be given the optimizer"
        advice = f"hand on or keep {' and '.join(names)} instead, and call step() on that here, then run again"
        if len(own) == 1 and is_from_before(unit, module, call, own[0]):
            message = (
                f"`{step}` steps {what} by a method that was taken before amp.scale_loss put one in its place that skips: "
                "Apex stepped on infinite gradients here, which a GradScaler never does"
            )
            advice = f"write {what}.step() here, by which such steps are skipped, then run again"
        raise Cannot("AMP905", module, call, message, advice)


def _untrained(unit: Unit, site: Site, optimizers: list[ast.expr]) -> Cannot:
    names = ", ".join(map(site.module.tree.segment, optimizers))
    message = f"amp.initialize gets {names} here, and nothing in the files given runs a backward or a step for it"
    advice = "give amp-migrate the files that train as well, or delete this call where nothing does, then run again"
    native = _natively_stepped(unit, site.module, optimizers)
    if native is not None:
        module, call = native
        place = f"{PurePath(module.path).name}:{call.lineno}"
        message = f"amp.initialize gets {names} here, which a GradScaler steps ({place})"
        advice = "delete this call, turn on the native AMP of that training where it is wanted, then run again"
    return Cannot("AMP905", *site.at, message, advice)


def _natively_stepped(
    unit: Unit, module: Module, optimizers: list[ast.expr]
) -> tuple[Module, ast.Call] | None:
    """Return a step that a GradScaler of the source makes with one of some optimizers."""
    objects = unit.losses.objects
    held = {number for node in optimizers for number in objects.optimizers_of(module, node)}
    for where, call in objects.method_calls.get("step", ()):
        assert isinstance(call.func, ast.Attribute)
        if call.args and objects.scaler(where, call.func.value) is not None:
            if held & objects.optimizers_of(where, call.args[0]):
                return where, call
    return None


def _unstepped(unit: Unit, backward: Backward) -> Cannot:
    names = " or ".join(map(backward.module.tree.segment, backward.optimizers)) or "an optimizer"
    message = f"nothing in the files given steps {names} behind this backward"
    advice = f"give amp-migrate the files that step {names} as well, then run again"
    behind = _step_behind(unit, backward)
    function = backward.function
    mixed = _stepped_with_schedules(unit)
    if mixed is not None:
        module, call = mixed
        what = module.tree.segment(call.func.value)  # type: ignore[attr-defined]
        message = f"`{what}` may be an optimizer or what sets its learning rate, and which of them this steps is not known"
        advice = "keep the two in variables of their own, and hand each on by itself and not by `**`, then run again"
        return Cannot("AMP905", module, call, message, advice)
    own = _own_step(unit, backward)
    if own is not None:
        module, call = own
        what = f"{module.tree.segment(call.func)}()"
        message = f"`{what}` steps {names} in a way of its own, and a GradScaler knows step() alone"
        advice = f"by hand, unscale_({names}) before each such call and update() behind it, which skips no step that overflows; or train this without Apex"
    elif function.node is not None and not unit.project.callers(function):
        message = f"nothing in the files given calls {spoken(function)} and steps {names} behind this backward"
        advice = f"give amp-migrate the files that do, or delete {spoken(function)} where nothing does, then run again"
    elif behind:
        message += f"; only `{behind}` follows, and what it steps is not in them"
        advice = f"give amp-migrate the file that says what `{behind}` does as well; where it only steps, call step() on the optimizer itself instead of `{behind}`, then run again"
    return Cannot("AMP905", *backward.at, message, advice)


def _own_step(unit: Unit, backward: Backward) -> tuple[Module, ast.Call] | None:
    """Return a call behind a backward of a method of its optimizer that steps, or steps another one that it holds: `second_step()`.

    It may stand behind a call that leads to the backward.
    """
    objects = unit.losses.objects
    held = {n for o in backward.optimizers for n in objects.optimizers_of(backward.module, o)}
    places: list[tuple[Function, ast.AST]] = [(backward.function, backward.node)]
    for function, node in places:
        calls = [
            call
            for call in function.calls
            if isinstance(call.func, ast.Attribute) and call.func.attr != "step"
            if held & objects.optimizers_of(function.module, call.func.value)
            if any(
                _steps_within(f)
                for c in unit.project.callees(call)
                for f in reachable(unit.project, c)
            )
            if runs_before(unit.project, function, node, call)
        ]
        if calls:
            return function.module, min(calls, key=key)
        above = ((site.function, site.call) for site in unit.project.callers(function))
        places += [place for place in above if place not in places]
    return None


def _steps_within(function: Function) -> bool:
    called = (call.func for call in function.calls)
    return any(isinstance(func, ast.Attribute) and func.attr == "step" for func in called)


def _step_behind(unit: Unit, backward: Backward) -> str:
    """Return the first call behind a backward that may step in another way: ``model.engine.step()``."""
    tree = backward.module.tree
    calls = [
        node
        for node in backward.function.calls
        if tail(node) == "step"
        if runs_before(unit.project, backward.function, backward.node, node)
        if not _steps_schedule(unit, backward.module, node.func)
    ]
    return next((f"{tree.segment(call.func)}()" for call in sorted(calls, key=key)), "")


def _stepped_with_schedules(unit: Unit) -> tuple[Module, ast.Call] | None:
    """Return the first step of what is an optimizer or a schedule, by the calls that made it."""
    for module, call in unit.calls():
        if tail(call) == "step" and _steps_schedule(unit, module, call.func):
            assert isinstance(call.func, ast.Attribute)
            if is_optimizer(unit.project, module, call.func.value):
                return module, call
    return None


def _steps_schedule(unit: Unit, module: Module, func: ast.expr) -> bool:
    return isinstance(func, ast.Attribute) and is_schedule(unit.project, module, func.value)


def _refuse_steps_alone(unit: Unit) -> None:
    """A step through a GradScaler that scaled no loss raises."""
    if not unit.backwards:
        step = unit.steps[0]
        raise Cannot(
            "AMP905",
            *step.at,
            f"nothing in the files given runs a backward for {step.text}, which steps here",
            "give amp-migrate the files that run the backward as well, then run again",
        )
