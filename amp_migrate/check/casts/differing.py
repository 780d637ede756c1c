"""What is said of a call whose casts differ, what it is compared by, and whether a rule of the run says so already."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.disabling import States
from amp_migrate.check.apex.given import stated
from amp_migrate.check.casts.callables import spelled
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.facts.constants import number
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.faults import Place, Trouble
from amp_migrate.training.contexts import scaling_calls
from amp_migrate.training.region import functions_run

CAST, UNCAST, SWITCHED, NATIVE, NARROWED, TWICE = (
    "is cast, which Apex did not do:",
    "is not cast, which Apex did:",
    "is cast while a flag is set that may change later, and Apex stays on:",
    "is not cast in runs without Apex, which native AMP did:",
    "turned native casts on, and nothing does where it did:",
    "is cast by native AMP in a program that keeps Apex, which casts it too:",
)

UNKNOWN: States = frozenset({None})
"""Nothing tells whether Apex is on."""

_TROUBLES = {
    UNCAST: Trouble.CASTS_MISSING,
    CAST: Trouble.CASTS_ADDED,
    SWITCHED: Trouble.CASTS_MISSING,
    NATIVE: Trouble.CASTS_MISSING,
    NARROWED: Trouble.CASTS_MISSING,
    TWICE: Trouble.HELD_BACK,
}
Where = tuple[Key, str]
"""A function, and the text of a call in it."""


def is_scaled(side: Side, item: Initialize) -> bool:
    """Tell whether the loss is known to have a scale: a static one of 1 is none."""
    found = stated(side.project, item.function.module, item.call, "loss_scale")
    if not found and any(k.arg is None for k in item.call.keywords):
        return False
    return not any(number(side.constant(item.function, value) or value) == 1.0 for value in found)


def is_unknown(
    was: Mapping[Where, Mapping[ast.Call, States]], now: Iterable[tuple[Where, Casts]]
) -> bool:
    """Tell whether the new text casts calls of which it is not known whether Apex did, and there are no others: all are alike."""
    states = (state for calls in was.values() for state in calls.values())
    return not any(True in state for state in states) and any(
        casts is not Casts.OFF and UNKNOWN in was.get(at, {}).values() for at, casts in now
    )


def same(side: Side, functions: Iterable[Function]) -> list[Function]:
    """Return the functions of a text that some of the other text are."""
    return [f for other in functions for f in side.functions.get(key(other), ())]


def lambdas(side: Side) -> dict[Key, list[Function]]:
    """Return the lambdas of a text by where they stand."""
    found: dict[Key, list[Function]] = {}
    for function in side.program.calls.anonymous:
        found.setdefault(key(function), []).append(function)
    return found


def run_by(
    old: Side, new: Side, places: Iterable[tuple[Function, ast.Call]], call: ast.Call
) -> list[Function]:
    """Return the functions of the new text that a call of it runs, or that of the old one at some places."""
    found = functions_run(new.project, new.project.module_of(call), call)
    for function, node in places:
        found += same(new, functions_run(old.project, function.module, node))
    return found


def ways(enabled: ast.expr | None) -> list[ast.expr]:
    """Return what turns a block on, each by itself."""
    if isinstance(enabled, ast.BoolOp) and isinstance(enabled.op, ast.Or):
        return enabled.values
    return [] if enabled is None else [enabled]


def scales(side: Side, function: Function) -> bool:
    """Tell whether a function scales a loss by Apex: where that is not there any more, it raises."""
    scaling = scaling_calls(side.project)
    if function.module not in scaling.values():
        return False
    return any(call in scaling for call in side.program.graph(function).calls)


def where(function: Function, call: ast.Call) -> Where:
    """Return what a call is compared by."""
    return key(function), spelled(call)


def differs(what: str, at: Where, call: ast.expr | ast.stmt) -> tuple[Key, Difference]:
    """Return what is said of a call."""
    step = Step(Label(f"`{at[1]}` {what}"), None, place(at, call))
    return at[0], Difference((step,), _TROUBLES.get(what, Trouble.GRADIENTS))


def place(at: Where, call: ast.expr | ast.stmt) -> Place:
    """Return where a call stands."""
    return Place(at[0][0], call.lineno)


_Reported = Callable[[Function, ast.Call], bool]


def told_above(
    program: Program,
    native: Casting,
    begun: Mapping[Function, frozenset[Casts]],
    function: Function,
    reported: _Reported,
    around: frozenset[Function] = frozenset(),
) -> bool:
    """Tell whether every way to a function of the new text may be cast, or goes through a call that is reported.

    A block of its own that may be on casts a call as well as it does a forward pass. The functions `around` are asked already.
    """
    if function in around:
        return True
    around |= {function}
    sites = [(site.function, site.call) for site in program.project.callers(function)]
    sites = [at for at in [*sites, *program.calls.mapped(function)] if at[0] in begun]
    return bool(sites) and all(
        native.at(where, call, begun[where]) is Casts.ON
        or native.here(where, call) is Casts.UNKNOWN
        or reported(where, call)
        or told_above(program, native, begun, where, reported, around)
        for where, call in sites
    )
