"""Whether the state that is saved and loaded is that of the GradScaler that trains, from then on."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator, Sequence

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Key, Side, changed, differs, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.mark import Mark
from amp_migrate.project import Function
from amp_migrate.protocol.certain.memory import CertainMemory
from amp_migrate.protocol.code.span import Span
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.protocol.run.blind import Search
from amp_migrate.training.contexts import is_off, scaling_calls
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.objects import Objects

_APART = "is of a GradScaler that scales nothing, beside one that does:"
_LOST = "is of a GradScaler that another one takes the place of before it scales anything:"
_USES = ("scale", "step", "unscale_", "update")
_MADE, _LOADED, _USED = Kind.MAKE_SCALER, Kind.SET_SCALE, Kind.BACKWARD
_Places = Iterable[tuple[Function, ast.Call]]


class _Scale(Mark):
    """Which loss scale there is."""

    FIRST = "that of the start"
    LOADED = "one that was loaded"
    LOST = "that of the start again, since one was loaded"


class _ScaleMachine(Unmoved):
    """Follows where a loss scale comes from."""

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """Nothing is loaded when a program begins."""
        return (_Scale.FIRST,)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        if event.kind is _LOADED:
            return Moved((_Scale.LOADED,))
        if event.kind is _MADE:
            return Moved((_Scale.FIRST if state is _Scale.FIRST else _Scale.LOST,))
        return Moved((state,), (Breach.REMADE,) if state is _Scale.LOST else ())


def saved_apart(
    old: Side, new: Side, every: Sequence[Initialize]
) -> Iterator[tuple[Key, Difference]]:
    """Yield what saves or loads the state of a GradScaler that is made for that alone, or is made anew then."""
    apart = [
        found
        for name, introduced in changed(old, new).items()
        for found in _apart(new, new.functions[name], introduced)
    ]
    if apart:
        known = [f for functions in old.functions.values() for f in functions]
        before = _named(_apart(old, known, frozenset()))
        yield from (_says(*f, _APART) for f in apart if not before.issuperset(_named([f])))
    yield from _lost(old, new, every)


def _apart(
    side: Side, functions: Iterable[Function], introduced: frozenset[str]
) -> Iterator[tuple[Function, ast.Call]]:
    """Yield what saves or loads in some functions the state of a GradScaler that scales nothing, beside one that does."""
    objects = side.program.training.objects
    used: set[int] = set()
    for method in _USES:
        for module, call in objects.method_calls.get(method, ()):
            assert isinstance(call.func, ast.Attribute)
            used |= objects.groups(module, call.func.value)
    made = {
        group for module, call in objects.made_scalers for group in objects.groups(module, call)
    }
    for function in functions if used & made else ():
        for call, _ in side.of_kind(function, Does.SAVE, Does.LOAD, introduced=introduced):
            if isinstance(call.func, ast.Attribute):
                held = objects.groups(function.module, call.func.value)
                if held & made and not held & used:
                    yield function, call


def _named(places: _Places) -> set[tuple[Key, str]]:
    """Return calls as both texts can name them."""
    return {(key(function), ast.unparse(call)) for function, call in places}


def _says(function: Function, call: ast.Call, what: str) -> tuple[Key, Difference]:
    return differs(function, call, f"`{ast.unparse(call)}` {what}")


def _lost(old: Side, new: Side, every: Sequence[Initialize]) -> Iterator[tuple[Key, Difference]]:
    """Yield what loads the state of a GradScaler that is made anew before it scales, where the old text kept what it loaded."""
    losing = list(_losing(new))
    if losing and not _lost_by_apex(old, every):
        before = _named(_losing(old))
        yield from (_says(*f, _LOST) for f in losing if not before.issuperset(_named([f])))


def _losing(side: Side) -> Iterator[tuple[Function, ast.Call]]:
    """Yield what loads the state of a GradScaler that is made anew before it scales."""
    objects = side.program.training.objects
    for scaler in objects.scalers:
        loads = list(_of_scaler(side, objects, scaler.number, ("load_state_dict",)))
        makes = [
            (side.project.function_of(module, call), call)
            for module, call in objects.made_scalers
            if objects.scaler(module, call) == scaler.number and not is_off(call)
        ]
        uses = list(_of_scaler(side, objects, scaler.number, ("scale", "step")))
        if loads and _loses(side, makes, loads, uses):
            yield loads[0]


def _lost_by_apex(old: Side, every: Sequence[Initialize]) -> bool:
    """Tell whether Apex was initialized anew as well, between what it loaded and a loss."""
    known = [f for functions in old.functions.values() for f in functions]
    loads = [(f, call) for f in known for call, _ in old.of_kind(f, Does.LOAD)]
    makes = [(item.function, item.call) for item in every]
    scaling = scaling_calls(old.project)
    uses = [(f, call) for f in known for call in f.calls if call in scaling]
    return _loses(old, makes, loads, uses)


def _of_scaler(
    side: Side, objects: Objects, number: int, methods: Iterable[str]
) -> Iterator[tuple[Function, ast.Call]]:
    for method in methods:
        for module, call in objects.method_calls.get(method, ()):
            assert isinstance(call.func, ast.Attribute)
            if objects.scaler(module, call.func.value) == number:
                yield side.project.function_of(module, call), call


def _loses(side: Side, makes: _Places, loads: _Places, uses: _Places) -> bool:
    """Tell whether a way leads from what is loaded to what makes a scale anew, and then to a loss."""
    happening: dict[Function, dict[ast.AST, tuple[Event, ...]]] = {}
    for kind, places in ((_MADE, makes), (_LOADED, loads), (_USED, uses)):
        for function, call in places:
            happening.setdefault(function, {})[call] = (Event(kind, call),)
    program = side.program.of_events(happening)
    loading = program.leading(lambda event: event.kind is _LOADED)
    span = Span(tuple(entry for entry in program.entries if entry[0] in loading))
    search = Search(program, CertainMemory(program))
    return any(True for _ in search.run(_ScaleMachine(), span).faults())
