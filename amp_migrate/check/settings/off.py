"""Whether a variable holds a GradScaler that is off, for want of an initialize, where it held one that trains before."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from amp_migrate.check.events.sides import Key, Side, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.mark import Mark
from amp_migrate.project import Function, Module
from amp_migrate.protocol.code.span import Span
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.protocol.run.blind import Search
from amp_migrate.protocol.run.memory import Memory
from amp_migrate.training.contexts import is_off
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.objects import Objects

_TEXT = "is off from then on, and nothing makes the one that trained before:"
_ON, _OFF, _USED = Kind.MAKE_SCALER, Kind.MAKE, Kind.BACKWARD
_Happening = dict[Function, dict[ast.AST, tuple[Event, ...]]]


class _Scaling(Mark):
    """Whether losses are scaled, and whether they are from then on."""

    NOT_YET = "none is made that scales"
    ON = "one is made that scales"
    ENDED = "one that is off has its place"


class _OffMachine(Unmoved):
    """Follows a GradScaler that is on, and what takes its place."""

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """Nothing is made when a program begins."""
        return (_Scaling.NOT_YET,)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        if event.kind is _ON:
            return Moved((_Scaling.ON,))
        if event.kind is _OFF:
            return Moved((state if state is _Scaling.NOT_YET else _Scaling.ENDED,))
        return Moved((state,), (Breach.REMADE,) if state is _Scaling.ENDED else ())


def turned_off(old: Side, new: Side) -> Iterator[tuple[Key, Difference]]:
    """Yield the disabled GradScalers of a function that take the place of one that trains, as Apex stayed on."""
    known = {ast.unparse(call) for _, call in old.program.training.objects.made_scalers}
    objects = new.program.training.objects
    for module, call in objects.made_scalers:
        if is_off(call) and ast.unparse(call) not in known and _is_of_variable(module, call):
            number = objects.scaler(module, call)
            happening = _happening(new, objects, number) if number is not None else {}
            if happening and _ends(new, happening):
                name = ast.unparse(module.tree.statement(call))
                yield differs(new.project.function_of(module, call), call, f"`{name}` {_TEXT}")


def _is_of_variable(module: Module, call: ast.Call) -> bool:
    """Tell whether a call makes what a variable holds: an object that is made anew has a GradScaler of its own."""
    stmt = module.tree.statement(call)
    if not isinstance(stmt, ast.Assign) or stmt.value is not call:
        return False
    return any(isinstance(n, ast.Name) for n in stmt.targets)


def _happening(new: Side, objects: Objects, number: int) -> _Happening:
    """Return where the GradScalers of a variable are made, on or off, and where a loss is scaled."""
    found: _Happening = {}
    made = [
        (module, call, _OFF if is_off(call) else _ON)
        for module, call in objects.made_scalers
        if objects.scaler(module, call) == number
    ]
    uses = [
        (module, call, _USED)
        for module, call in objects.method_calls.get("scale", ())
        if isinstance(call.func, ast.Attribute)
        and objects.scaler(module, call.func.value) == number
    ]
    if {kind for _, _, kind in (*made, *uses)} != {_ON, _OFF, _USED}:
        return {}
    for module, call, kind in (*made, *uses):
        function = new.project.function_of(module, call)
        found.setdefault(function, {})[call] = (Event(kind, call),)
    return found


def _ends(side: Side, happening: _Happening) -> bool:
    """Tell whether a way leads from a GradScaler that is on to one that is off, and then to a loss."""
    program = side.program.of_events(happening)
    making = program.leading(lambda event: event.kind is _ON)
    span = Span(tuple(entry for entry in program.entries if entry[0] in making))
    search = Search(program, Memory(program))
    return any(True for _ in search.run(_OffMachine(), span).faults())
