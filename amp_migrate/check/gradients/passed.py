"""Whether a run says of steps that may be left out what an overflow in their gradients did to the next one under Apex."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from amp_migrate.check.events.claims import SAYS, WINDOWS, Claims
from amp_migrate.check.events.sides import Key, Side, changed
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.check.gradients.scaled import backwards
from amp_migrate.project import Function
from amp_migrate.project.once import once
from amp_migrate.protocol.certain.memory import CertainMemory
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.code.programs import Programs
from amp_migrate.protocol.faults import Breach, Fault
from amp_migrate.protocol.left_scaled import of_block
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.protocol.run.blind import Search
from amp_migrate.training.contexts import scaling_calls
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.flags.counted import is_counted

_UNTOLD = "are cleared on a way past the step, and no rule says what differs when they overflow:"


@dataclass(frozen=True)
class _Followed(Unmoved):
    """Follows whether one optimizer has gradients, by its number, that the losses of some backward passes of Apex add to."""

    number: int
    fed: Mapping[ast.AST, frozenset[int]]

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """There are no gradients when a program begins."""
        return (False,)

    def _feeds(self, event: Event) -> bool:
        return event.kind is Kind.BACKWARD and self.number in self.fed.get(event.node, ())

    def _ends(self, event: Event) -> bool:
        """Tell whether the gradients are taken, cleared or made anew."""
        if event.kind not in (Kind.STEP, Kind.OTHER_STEP, Kind.ZERO_GRAD, Kind.MAKE):
            return False
        return event.may_concern(self.number)


class PassedMachine(_Followed):
    """Finds where the gradients are cleared that no step took."""

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of whether there are gradients."""
        if not self._ends(event):
            return Moved((state or self._feeds(event),))
        lost = event.kind is Kind.ZERO_GRAD and state and (visited or event.certain)
        return Moved((False,), (Breach.CLEARED,) if lost else ())


class _AddedMachine(_Followed):
    """Finds where gradients are there still when a backward adds to them, as in a window of several micro-batches."""

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of whether there are gradients."""
        if self._ends(event):
            return Moved((False,))
        feeds = self._feeds(event)
        return Moved((state or feeds,), (Breach.MIXED,) if state and feeds else ())


def passed(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield where gradients are cleared that a step did not take which takes them on another way, and nothing says so."""
    fed: dict[ast.AST, frozenset[int]] = {}
    names: dict[int, Key] = {}
    homes: list[tuple[int, Function]] = []
    scaling = scaling_calls(new.project)
    for name in changed(old, new):
        stays = any(c in scaling for f in new.functions[name] for c in f.calls)
        for function in () if stays else old.functions[name]:
            for call, _, by_apex in backwards(old, function):
                if by_apex and not claims.drops(function):
                    fed[call] = of_block(old.program, function, call)
                    names |= dict.fromkeys(fed[call], name)
                    homes += [(number, function) for number in fed[call]]
    steps = _steps(old) if fed else {}
    for number in sorted(names.keys() & steps.keys()):
        backward = [f for n, f in homes if n == number]
        functions = {*backward, *(f for f, _ in steps[number])}
        if len(functions) > 1 or len(backward) > 1:
            continue
        search, programs = _searched(old.program)
        span = programs.of_optimizers([number])
        # The rest of a window is cleared before the next one begins: that is told elsewhere.
        waits = any(_waits(old, *step) for step in steps[number])
        if waits and search.run(_AddedMachine(number, fed), span).breached():
            continue
        for fault in search.run(PassedMachine(number, fed), span).faults():
            if not _is_told(fault, claims, SAYS - {WINDOWS} if waits else SAYS):
                label = Label(f"gradients {_UNTOLD}")
                yield names[number], Difference((Step(label, fault.place, fault.place),))


@once
def _searched(program: Program) -> tuple[Search, Programs]:
    """Return what looks for breaches in the gradients of a program, and its parts."""
    part = program.of_gradients
    return Search(part, CertainMemory(part)), Programs(part)


def _steps(side: Side) -> dict[int, list[tuple[Function, ast.AST]]]:
    """Return the steps of each optimizer, by its number."""
    found: dict[int, list[tuple[Function, ast.AST]]] = {}
    program = side.program
    named = ((m, n) for m in side.project.modules.values() for n in m.tree.attributes("step"))
    for function in dict.fromkeys(program.calls.body(*place) for place in named):
        held = program.training.of(function)
        for event in (event for events in held.values() for event in events):
            for number in (event.optimizers or ()) if event.kind is Kind.STEP else ():
                found.setdefault(number, []).append((function, event.node))
    return found


def _waits(side: Side, function: Function, step: ast.AST) -> bool:
    """Tell whether a step may wait for several micro-batches."""
    return is_counted(side.project, side.program.training.losses.reached, function, step)


def _is_told(fault: Fault, claims: Claims, said: frozenset[str]) -> bool:
    """Tell whether a rule says of a file on the way that a step may be left out, or moves what clears."""
    paths = {place.path for place in (*fault.way, fault.place)}
    notes = (c for c in claims.every if c.is_note and c.code in said)
    return claims.move(fault.place) or any(note.path in paths for note in notes)
