"""Whether a GradScaler is made by what Apex asked for: nothing that it goes by is set anew between the two."""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from amp_migrate.check.apex.assumed import Initialize, guards
from amp_migrate.check.counterpart import Counterpart, counterpart, heads, statements
from amp_migrate.check.events.sides import Side, key
from amp_migrate.check.flags import PATH, Flag, Flags, calls, is_lasting, paths, read_by, text_of
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import argument, walk
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.project import Function
from amp_migrate.project.reach import of_new_objects
from amp_migrate.protocol.certain.memory import CertainMemory
from amp_migrate.protocol.code.span import Span
from amp_migrate.protocol.faults import Breach, Fault, Place
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.protocol.run.blind import Search
from amp_migrate.training.contexts import scaling_calls
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.flags.alike import Alike
from amp_migrate.training.steps import backward_of

_MADE = Kind.MAKE_SCALER
SET, ASKED, DONE, USED = Kind.SET_SCALE, Kind.ABSENT, Kind.MAKE, Kind.BACKWARD
_ELSE = Kind.HANDED  # an initialize that asks for none of the flags
_UNDER_IT = Kind.STEP  # a loss that Apex scales where a test asks for one of the flags
_PLAIN = Kind.FORWARD  # a backward that Apex does not scale, of what it goes on to cast
Happening = dict[Function, dict[ast.AST, tuple[Event, ...]]]


class _State(NamedTuple):
    """Whether the GradScaler is made, and whether Apex has asked: None before, and False once a flag was set since.

    `late` tells that it was made by another flag than Apex asked for, which has not initialized since, or that Apex
    has initialized by another flag, and the GradScaler is not made since. `on` tells that it has initialized at all.
    """

    made: bool | None = None
    asked: bool | None = None
    late: bool = False
    on: bool = False


class AnewMachine(Unmoved):
    """Follows a GradScaler, the flags of its condition, and where Apex asked for them.

    `last` tells that Apex asks no more behind where the GradScaler is made, `again` that it may be made behind where Apex asks.
    With `stale`, a use goes wrong wherever a flag was set since Apex asked.
    """

    def __init__(self, *, last: bool = False, again: bool = False, stale: bool = False) -> None:
        self._last = last
        self._again = again
        self._stale = stale

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """Nothing is made or asked when a program begins."""
        return (_State(),)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        assert isinstance(state, _State)
        if event.kind is SET:
            made, was = (None if x is None else False for x in (state.made, state.asked))
            return Moved((state._replace(made=made, asked=was),))
        if event.kind is _MADE:
            late = state.asked is False
            breaches = (Breach.ANEW,) if late and self._last else ()
            return Moved((state._replace(made=True, late=late),), breaches)
        if event.kind in (DONE, _ELSE):
            late = event.kind is DONE and state.made is False and self._again
            return Moved((state._replace(late=late, on=state.on or event.kind is DONE),))
        if event.kind is _PLAIN:
            return Moved((state,), (Breach.ANEW,) if state.late and state.on else ())
        if event.kind is _UNDER_IT:
            return Moved((state,), (Breach.ANEW,) if state.late and state.made is False else ())
        if event.kind is ASKED and state.made is False and self._again:
            return Moved((state._replace(asked=True),))
        stale = self._stale and state.asked is False
        wrong = state.late or stale if event.kind is USED else state.made is False
        breaches = (Breach.ANEW,) if wrong else ()
        return Moved((state if event.kind is USED else state._replace(asked=True),), breaches)


def set_anew(old: Side, new: Side, initializes: Sequence[Initialize]) -> Iterator[Fault]:
    """Yield where Apex asked for a flag that is set anew behind the GradScaler which goes by it, or in front of that.

    So are GradScalers that go by what their own function sets for the next time that it runs.
    """
    known = {ast.unparse(call) for _, call in old.program.training.objects.made_scalers}
    for module, call in new.program.training.objects.made_scalers:
        read = {ast.unparse(part) for k in call.keywords for part in [*paths(k.value), *calls(k)]}
        if not read or ast.unparse(call) in known:
            continue
        function = new.project.function_of(module, call)
        at = counterpart(old, function, call)
        stored = _set_behind(new, function, call) if at is not None else frozenset()
        if at is not None and stored and not all(_asks(f, c, stored) for f, c in _scaled(old)):
            place = Place(at.function.module.path, getattr(at.node, "lineno", 1))
            yield Fault(Breach.REMADE, place, (place,))
        if at is not None and (found := _GoneBy(old, new, at, read).happening(initializes)):
            program = old.program.of_events(found)
            last = not _comes_to(old, at, found, behind=True)
            again = _comes_to(old, at, found, behind=False)
            machine = AnewMachine(last=last, again=again)
            makes = program.leading(lambda event: event.kind is _MADE)
            span = Span(tuple(entry for entry in program.entries if entry[0] in makes))
            yield from Search(program, CertainMemory(program)).run(machine, span).faults()


def _set_behind(new: Side, function: Function, call: ast.Call) -> frozenset[str]:
    """Return what a function sets for its next run of what it asks as it makes a GradScaler: it makes another one then."""
    enabled = argument(call, "enabled")
    if enabled is None or evaluate(enabled) is not None or of_new_objects(new.project, function):
        return frozenset()
    known = Flags.of(new.project)
    asked = [*read_by(function, enabled), *(Flag(function, c) for c in calls(enabled))]
    asked += [flag for one in asked for flag in known.behind(one)]
    lasting = [flag for flag in asked if is_lasting(flag)]
    graph = new.program.graph(function)
    order, made = graph.order(exceptions=False), graph.at(call)
    return frozenset(
        text_of(stored.node)
        for stored in (known.stores(lasting) if lasting else ())
        if stored.function is function
        and (is_lasting(stored) or not isinstance(stored.node, ast.Name))
        and any(order.may_reach(m, p) for p in graph.at(stored.node) for m in made)
    )


def _scaled(side: Side) -> Iterator[Flag]:
    """Yield the losses that Apex scales."""
    for call, module in scaling_calls(side.project).items():
        yield Flag(side.project.function_of(module, call), call)


def _asks(function: Function, node: ast.AST, flags: Collection[str]) -> bool:
    """Tell whether a test around a node asks one of some flags, as they are written, or what may be given one."""
    asked = (path for test, _ in guards(function, node) for path in paths(test))
    return any(text_of(p) in flags or text_of(p) in function.parameters.names for p in asked)


def _comes_to(old: Side, at: Counterpart, happening: Happening, *, behind: bool) -> bool:
    """Tell whether Apex may ask behind where the GradScaler is made, or in front of it; elsewhere it asks behind that."""
    asking = {
        function: [node for node, events in held.items() if any(e.kind is ASKED for e in events)]
        for function, held in happening.items()
    }
    graph = old.program.graph(at.function)
    order = graph.order(exceptions=False)
    own = asking.pop(at.function, [])
    if at.node in own and at.behind is behind:
        return True
    asked = [point for node in own if node is not at.node for point in graph.at(node)]
    ways = [(made, ask) for made in graph.at(at.node) for ask in asked]
    if not behind:
        return any(order.may_reach(ask, made) for made, ask in ways)
    return any(asking.values()) or any(order.may_reach(made, ask) for made, ask in ways)


class _GoneBy:
    """What a GradScaler goes by that is made at a place of the old text."""

    def __init__(self, old: Side, new: Side, at: Counterpart, read: set[str]) -> None:
        self._old = old
        self._new = new
        self._project = old.project
        self._at = at
        self._known = Flags.of(old.project)
        parts = [n for n in walk(at.function.scope) if isinstance(n, PATH | ast.arg | ast.Call)]
        own = [Flag(at.function, n) for n in parts if text_of(n) in read]
        self._flags = closure(own, self._given)

    def happening(self, initializes: Sequence[Initialize]) -> Happening:
        """Return where the GradScaler is made, where its flags are set, and where Apex asked for them."""
        known = self._known
        asked = [
            one for one in dict.fromkeys(known.asked(initializes)) if known.among(one, self._flags)
        ]
        found: Happening = {}
        stores = [
            stored
            for stored in (known.stores([*self._flags, *asked]) if asked else ())
            if self._stays(stored) and not self._begins(stored, asked)
        ]
        if left := self._varying(known.without_copies(stores, self._flags)):
            setting = {s.function.module.tree.statement(s.node) for s in left}
            asked = [a for a in asked if a.function.module.tree.statement(a.node) not in setting]
            made = partial(add, found, _MADE, [Flag(self._at.function, self._at.node)])
            sets = partial(add, found, SET, left)
            for adds in (made, sets) if self._at.behind else (sets, made):
                adds()
            add(found, ASKED, asked)
            for item in initializes:
                own = any(known.among(one, self._flags) for one in known.asked([item]))
                add(found, DONE if own else _ELSE, [Flag(item.function, item.call)])
            under = [used for used in self._scaled if self._is_asked_for(used)]
            add(found, _UNDER_IT, under)
            add(found, USED, [used for used in self._scaled if used not in under])
            add(found, _PLAIN, self._plain)
        return found

    def _given(self, flag: Flag) -> Iterator[Flag]:
        """Yield what calls give for a flag that is a parameter, and what is read for one that is computed."""
        yield from self._known.behind(flag)
        function, name = flag.function, text_of(flag.node)
        if name in function.parameters.names:
            for _, where, value in self._project.received(function, name, itself=True):
                if value is not None:
                    yield from (Flag(where, part) for part in paths(value))

    def _varying(self, stores: Iterable[Flag]) -> list[Flag]:
        """Return some stores but for those that set again what was there before."""
        places = {stored: (stored.function.module, stored.node) for stored in stores}
        left = Alike.of(self._project).varying(places.values())
        return [stored for stored, place in places.items() if place in left]

    def _stays(self, stored: Flag) -> bool:
        """Tell whether the statement that stores stands in the new text as well."""
        statement = stored.function.module.tree.statement(stored.node)
        after = self._new.functions.get(key(stored.function), ())
        return any(heads(s) == heads(statement) for f in after for s in statements(f))

    def _begins(self, stored: Flag, asked: Sequence[Flag]) -> bool:
        """Tell whether a constructor gives its object a flag in front of all that asks for it, as it makes the GradScaler of it."""
        function = self._at.function
        if {function} != {stored.function, *(one.function for one in asked)}:
            return False
        own = isinstance(stored.node, ast.Attribute) and function.is_receiver(stored.node.value)
        if not own or not of_new_objects(self._project, function):
            return False
        graph = self._old.program.graph(function)
        order, there = graph.order(exceptions=False), graph.at(stored.node)
        asking = [
            point for node in (self._at.node, *(a.node for a in asked)) for point in graph.at(node)
        ]
        return not any(order.may_reach(point, to) for point in asking for to in there)

    def _is_asked_for(self, used: Flag) -> bool:
        """Tell whether a test around a loss that Apex scales asks for one of the flags: it is set there, as it is for the GradScaler."""
        tests = [test for test, truth in guards(used.function, used.node) if truth]
        asked = [Flag(used.function, part) for test in tests for part in paths(test)]
        return any(self._known.among(one, self._flags) for one in asked)

    @cached_property
    def _scaled(self) -> list[Flag]:
        """The losses that Apex scales."""
        return list(_scaled(self._old))

    @cached_property
    def _plain(self) -> list[Flag]:
        """The backward passes that Apex does not scale where it may be on."""
        return [
            Flag(self._project.function_of(module, call), call)
            for module, call in self._project.nodes(ast.Call)
            if backward_of(call) is not None
            and guards(self._project.function_of(module, call), call)
        ]


def add(found: Happening, kind: Kind, flags: Iterable[Flag]) -> None:
    """Add events of a kind at the nodes of some flags, behind those that happen there already."""
    for function, node in flags:
        held = found.setdefault(function, {})
        held[node] = (*held.get(node, ()), Event(kind, node))
