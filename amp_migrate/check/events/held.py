"""What calls do by methods that something else holds than the object they belong to: ``clear = optimizer.zero_grad``."""

from __future__ import annotations

import ast

from amp_migrate.check.events.traces import Label
from amp_migrate.facts.paths import path
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.events import Kind


def by_held(program: Program, function: Function, call: ast.Call) -> Label | None:
    """Return that a call steps or clears by such methods, and of what; None where it runs none, or one of a schedule."""
    methods = program.training.named_methods.run(function, call)
    kinds = {event.kind for event in program.training.of(function).get(call, ())} if methods else ()
    owners = sorted({path(m.node.value) or ast.unparse(m.node.value) for m in methods})
    does = next((kind for kind in (Kind.STEP, Kind.ZERO_GRAD) if kind in kinds), None)
    return None if does is None else Label(does.value, " or ".join(owners))
