"""Units that scale gradients and have no step in sight, or the other way round."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import tail, walk
from amp_migrate.unit.cannot import Cannot
from amp_migrate.unit.gather import SCHEDULER
from amp_migrate.unit.order import key
from amp_migrate.unit.sites import Kind
from amp_migrate.unit.steps import Backward
from amp_migrate.unit.unit import Unit


def refuse_unstepped(unit: Unit, gone: set[ast.AST]) -> None:
    """A unit that scales gradients but whose step is out of sight would train on scaled gradients."""
    if unit.steps:
        _refuse_steps_alone(unit)
        return
    for backward in unit.backwards:
        if backward.node not in gone:
            raise _unstepped(unit, backward)
    for site in unit.of(Kind.INITIALIZE):
        optimizers = unit.options[site].arguments.get("optimizers")
        if optimizers is not None and not (
            isinstance(optimizers, ast.Constant) and optimizers.value is None
        ):
            if unit.backwards:
                raise _unstepped(unit, unit.backwards[0])
            raise Cannot(
                "AMP905",
                site.module,
                site.node,
                "no backward and no step of this optimizer is in sight",
                "give the files that train to the tool as well, or migrate them by hand; where what trains it has a "
                "GradScaler of its own, delete the call",
            )


def _unstepped(unit: Unit, backward: Backward) -> Cannot:
    message = "no optimizer.step() is in sight for this backward"
    advice = "step the optimizer through scaler.step(optimizer) and scaler.update() wherever it is stepped"
    behind = _step_behind(backward)
    function = backward.function
    if function.node is not None and not unit.project.callers(function):
        message += f", nor a call of {function.qualname}()"
        advice = f"delete {function.qualname}() if nothing else calls it, or {advice}"
    elif behind:
        message += f", only `{behind}`, whose own step is not"
        advice += f": give `{behind.rpartition('.')[0]}` the GradScaler, and let it do so"
    return Cannot("AMP905", backward.module, backward.node, message, advice)


def _step_behind(backward: Backward) -> str:
    """Return the first call behind a backward that may step in another way: ``model.engine.step()``."""
    tree = backward.module.tree
    calls = [
        node
        for node in walk(backward.function.scope)
        if isinstance(node, ast.Call) and tail(node) == "step" and key(node) > key(backward.node)
    ]
    texts = (tree.segment(call.func) for call in sorted(calls, key=key))
    return next((t + "()" for t in texts if not any(w in t.lower() for w in SCHEDULER)), "")


def _refuse_steps_alone(unit: Unit) -> None:
    """A step through a GradScaler that scaled no loss raises."""
    if not unit.backwards:
        step = unit.steps[0]
        raise Cannot(
            "AMP905",
            step.module,
            step.call,
            "no backward is in sight for this step",
            "scale the loss where it is computed: scaler.scale(loss).backward()",
        )
