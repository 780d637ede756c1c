"""Whether a run says of the losses that Apex did not scale while it was on, and that are scaled now, what differs of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.check.anew import ASKED, SET, USED, AnewMachine, Happening, add
from amp_migrate.check.apex.assumed import Initialize, guards
from amp_migrate.check.apex.initialized import ON, initialized
from amp_migrate.check.events.claims import FURTHER, MENDED, Claims
from amp_migrate.check.events.sides import Key, Side
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.check.flags import Flag, Flags, read_by
from amp_migrate.check.gradients.scaled import scaled_now
from amp_migrate.project import Function
from amp_migrate.protocol.certain.memory import CertainMemory
from amp_migrate.protocol.faults import Place
from amp_migrate.protocol.run.blind import Search

_UNTOLD = "is scaled now and was not under Apex, and no rule says what differs when it overflows:"


def untold(
    old: Side, new: Side, every: Sequence[Initialize], claims: Claims
) -> Iterator[tuple[Key, Difference]]:
    """Yield the plain backward passes that run with AMP on, are scaled now, and of which no rule says so."""
    live = [item for item in every if item.on is not None]
    for name, function, call, label in scaled_now(old, new) if live else ():
        place = Place(function.module.path, call.lineno)
        if claims.note(FURTHER, place) or claims.say(MENDED, place):
            continue
        if _is_cast(old, function, call) and _runs_on(old, live, function, call):
            yield name, Difference((Step(Label(f"`{label}` {_UNTOLD}"), place, place),))


def _is_cast(old: Side, function: Function, backward: ast.Call) -> bool:
    """Tell whether casts have a part in a loss."""
    assert isinstance(backward.func, ast.Attribute)
    losses = old.program.training.losses
    return bool(losses.networks(function, backward.func.value, cast=True))


def _runs_on(old: Side, live: Sequence[Initialize], function: Function, backward: ast.Call) -> bool:
    tests = [test for test, _ in guards(function, backward)]
    if tests:
        return _is_always_on(live, function) or _is_reset(old, live, function, backward, tests)
    apex = initialized(old.program, {item.call for item in live})
    start = apex.spread(apex.entries()).get(function)
    states = dict(apex.calls(function, start)) if start is not None else {}
    return states.get(backward) == ON


def _is_always_on(live: Sequence[Initialize], function: Function) -> bool:
    """Tell whether a function initializes Apex, and that is on, whatever its tests say."""
    own = [item for item in live if item.function is function]
    return any(not item.off and not any(guards(function, item.call)) for item in own)


def _is_reset(
    old: Side,
    live: Sequence[Initialize],
    function: Function,
    backward: ast.Call,
    tests: Sequence[ast.expr],
) -> bool:
    """Tell whether a flag that Apex asked for is set anew before a backward whose tests ask for it."""
    known = Flags.of(old.project)
    every = list(dict.fromkeys(known.asked(live)))
    read = [list(read_by(function, test)) for test in tests]
    own = [flag for flags in read if any(known.among(f, every) for f in flags) for flag in flags]
    asked = [one for one in every if known.among(one, own)]
    stores = [
        stored
        for stored in known.stores([*own, *asked] if asked else [])
        if _may_clear(stored) and not known.is_computed(stored, asked)
    ]
    found: Happening = {}
    if stores:
        add(found, SET, stores)
        add(found, ASKED, asked)
        add(found, USED, [Flag(function, backward)])
        program = old.program.of_events(found)
        search = Search(program, CertainMemory(program))
        return bool(search.run(AnewMachine(stale=True), program.span).breached())
    return False


def _may_clear(stored: Flag) -> bool:
    """Tell whether a flag gets a value that is false, or that a test gives."""
    statement = stored.function.module.tree.statement(stored.node)
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Constant):
        return not value.value
    return isinstance(value, ast.BoolOp | ast.Compare | ast.UnaryOp) and isinstance(
        statement, ast.Assign | ast.AnnAssign
    )
