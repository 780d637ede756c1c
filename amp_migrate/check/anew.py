"""Whether a GradScaler is made by what Apex asked for: no flag in its condition is set anew between the two."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from amp_migrate.check.apex.assumed import Initialize, guards
from amp_migrate.check.counterpart import Counterpart, counterpart, heads, statements
from amp_migrate.check.events.sides import Side, key
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import argument, tail, walk
from amp_migrate.project import Function
from amp_migrate.protocol.certain.memory import CertainMemory
from amp_migrate.protocol.faults import Breach, Fault
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.protocol.run.solve import Run
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.events import Event, Kind

_ARGUMENTS = {"enabled": 2, "opt_level": 3}
_MADE, _SET, _ASKED, _USED = Kind.MAKE_SCALER, Kind.SET_SCALE, Kind.ABSENT, Kind.BACKWARD
_PATH = ast.Name | ast.Attribute | ast.Subscript
_Happening = dict[Function, dict[ast.AST, tuple[Event, ...]]]


class _State(NamedTuple):
    """Whether the GradScaler is made, and whether Apex has asked: None before, and False once a flag was set since.

    `late` tells that it was made by another flag than Apex asked for.
    """

    made: bool | None = None
    asked: bool | None = None
    late: bool = False


class _AnewMachine(Unmoved):
    """Follows a GradScaler, the flags of its condition, and where Apex asked for them.

    `last` tells that Apex asks no more behind where the GradScaler is made, `again` that it may be made behind where Apex asks.
    """

    def __init__(self, *, last: bool, again: bool) -> None:
        self._last = last
        self._again = again

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """Nothing is made or asked when a program begins."""
        return (_State(),)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        assert isinstance(state, _State)
        if event.kind is _SET:
            made, was = (None if x is None else False for x in (state.made, state.asked))
            return Moved((state._replace(made=made, asked=was),))
        if event.kind is _MADE:
            late = state.asked is False
            breaches = (Breach.ANEW,) if late and self._last else ()
            return Moved((_State(True, state.asked, late),), breaches)
        if event.kind is _ASKED and state.made is False and self._again:
            return Moved((_State(False, True, True),))
        wrong = state.late if event.kind is _USED else state.made is False
        breaches = (Breach.ANEW,) if wrong else ()
        return Moved((state if event.kind is _USED else _State(state.made, True),), breaches)


class _Flag(NamedTuple):
    """A variable, attribute or item of a function of the old text, or a parameter of it."""

    function: Function
    node: ast.AST


def set_anew(old: Side, new: Side, initializes: Sequence[Initialize]) -> Iterator[Fault]:
    """Yield where Apex asked for a flag that is set anew behind the GradScaler which goes by it, or in front of that."""
    known = {ast.unparse(call) for _, call in old.program.training.objects.made_scalers}
    for module, call in new.program.training.objects.made_scalers:
        enabled = argument(call, "enabled")
        if enabled is None or isinstance(enabled, ast.Constant) or ast.unparse(call) in known:
            continue
        at = counterpart(old, new.project.function_of(module, call), call)
        if at is not None and (found := _Flags(old, new, at, enabled).happening(initializes)):
            program = old.program.of_events(found)
            last = not _comes_to(old, at, found, behind=True)
            again = _comes_to(old, at, found, behind=False)
            machine = _AnewMachine(last=last, again=again)
            yield from Run(program, machine, CertainMemory(program)).faults()


def _comes_to(old: Side, at: Counterpart, happening: _Happening, *, behind: bool) -> bool:
    """Tell whether Apex may ask behind where the GradScaler is made, or in front of it; elsewhere it asks behind that."""
    asking = {
        function: [node for node, events in held.items() if any(e.kind is _ASKED for e in events)]
        for function, held in happening.items()
    }
    graph = old.program.graph(at.function)
    order = graph.order(exceptions=False)
    asked = [point for node in asking.pop(at.function, ()) for point in graph.at(node)]
    ways = [(made, ask) for made in graph.at(at.node) for ask in asked]
    if not behind:
        return any(order.may_reach(ask, made) for made, ask in ways)
    return any(asking.values()) or any(order.may_reach(made, ask) for made, ask in ways)


class _Flags:
    """What a GradScaler goes by that is made at a place of the old text."""

    def __init__(self, old: Side, new: Side, at: Counterpart, enabled: ast.expr) -> None:
        self._old = old
        self._new = new
        self._project = old.project
        self._at = at
        read = {ast.unparse(part) for part in _paths(enabled)}
        parts = [n for n in walk(at.function.scope) if isinstance(n, _PATH | ast.arg)]
        own = [_Flag(at.function, n) for n in parts if _text(n) in read]
        self._flags = closure(own, self._given)

    def happening(self, initializes: Sequence[Initialize]) -> _Happening:
        """Return where the GradScaler is made, where its flags are set, and where Apex asked for them."""
        asked = [
            one
            for one in dict.fromkeys(self._asked(initializes))
            if any(self._same(one, flag) or self._alike(one, flag) for flag in self._flags)
        ]
        found: _Happening = {}
        stores = self._stores([*self._flags, *asked]) if asked else []
        if stores:
            made = partial(_add, found, _MADE, [_Flag(self._at.function, self._at.node)])
            sets = partial(_add, found, _SET, stores)
            for add in (made, sets) if self._at.behind else (sets, made):
                add()
            _add(found, _ASKED, asked)
            _add(found, _USED, self._scaled)
        return found

    def _given(self, flag: _Flag) -> Iterator[_Flag]:
        """Yield what calls give for a flag that is a parameter."""
        function, name = flag.function, _text(flag.node)
        if name in function.parameters.names:
            for site in self._project.calls_of(function):
                value = self._project.arguments(site, function).get(name)
                if value is not None:
                    yield from (_Flag(site.function, part) for part in _paths(value))

    def _asked(self, initializes: Iterable[Initialize]) -> Iterator[_Flag]:
        """Yield what decides whether Apex is initialized, and how, in whatever function."""
        for item in initializes:
            given = (argument(item.call, name, place) for name, place in _ARGUMENTS.items())
            tests = [(item.function, value) for value in given if value is not None]
            sites = [(item.function, item.call)]
            for function, call in closure(sites, self._calling):
                tests += [(function, test) for test, _ in guards(function, call)]
            for function, test in tests:
                for part in closure(_paths(test), partial(_values, function)):
                    yield _Flag(function, part)

    def _calling(self, at: tuple[Function, ast.Call]) -> Iterator[tuple[Function, ast.Call]]:
        return ((site.function, site.call) for site in self._project.callers(at[0]))

    def _same(self, one: _Flag, other: _Flag) -> bool:
        """Tell whether two flags are the same variable, or the same attribute or item of what may be one object."""
        a, b = one.node, other.node
        if isinstance(a, ast.Attribute) and isinstance(b, ast.Attribute):
            return a.attr == b.attr and self._may_be_one(one, a.value, other, b.value)
        if isinstance(a, ast.Subscript) and isinstance(b, ast.Subscript):
            alike = ast.unparse(a.slice) == ast.unparse(b.slice)
            return alike and self._may_be_one(one, a.value, other, b.value)
        names = isinstance(a, ast.Name | ast.arg) and isinstance(b, ast.Name | ast.arg)
        return names and _text(a) == _text(b) and _owner(one) is _owner(other)

    def _may_be_one(self, one: _Flag, a: ast.expr, other: _Flag, b: ast.expr) -> bool:
        values = self._project.values
        groups = values.groups(one.function.module, a), values.groups(other.function.module, b)
        return not all(groups) or bool(groups[0] & groups[1])

    def _alike(self, one: _Flag, other: _Flag) -> bool:
        """Tell whether two flags hold one value, handed on from one to the other."""
        return bool(self._groups(one) & self._groups(other))

    def _groups(self, flag: _Flag) -> frozenset[int]:
        node = flag.node
        if not isinstance(node, ast.expr | ast.arg):
            return frozenset()
        return self._project.values.groups(flag.function.module, node)

    def _stores(self, flags: list[_Flag]) -> list[_Flag]:
        """Return where one of some flags, or what holds it, gets another value in the new text too."""
        found = []
        for function in self._project.functions():
            for node in function.own_nodes:
                if not isinstance(node, _PATH) or not isinstance(node.ctx, ast.Store):
                    continue
                stored = _Flag(function, node)
                if any(self._same(stored, f) or self._holds(stored, f) for f in flags):
                    found += [stored] if self._stays(function, node) else []
        return self._without_copies(found)

    def _holds(self, stored: _Flag, flag: _Flag) -> bool:
        """Tell whether a variable is what a flag is an attribute or item of."""
        below = flag.node
        while isinstance(below, ast.Attribute | ast.Subscript):
            below = below.value
        held = isinstance(below, ast.Name) and below is not flag.node
        return held and self._same(stored, _Flag(flag.function, below))

    def _without_copies(self, stores: list[_Flag]) -> list[_Flag]:
        """Return the stores but for those that hand on what the GradScaler goes by, as it is."""
        equal, left = list(self._flags), stores
        while copies := [s for s in left if self._is_copy(s, equal)]:
            equal += copies
            left = [s for s in left if s not in copies]
        return left

    def _is_copy(self, stored: _Flag, equal: list[_Flag]) -> bool:
        value = getattr(stored.function.module.tree.statement(stored.node), "value", None)
        given = _Flag(stored.function, value) if isinstance(value, _PATH) else None
        return given is not None and any(self._same(given, flag) for flag in equal)

    def _stays(self, function: Function, node: ast.AST) -> bool:
        """Tell whether the statement that stores at a node stands in the new text as well."""
        statement = function.module.tree.statement(node)
        after = self._new.functions.get(key(function), ())
        return any(heads(s) == heads(statement) for f in after for s in statements(f))

    @cached_property
    def _scaled(self) -> list[_Flag]:
        """The losses that Apex scales."""
        return [
            _Flag(self._project.function_of(module, call), call)
            for module, call in self._project.nodes(ast.Call)
            if tail(call) == "scale_loss"
        ]


def _add(found: _Happening, kind: Kind, flags: Iterable[_Flag]) -> None:
    for function, node in flags:
        held = found.setdefault(function, {})
        held[node] = (*held.get(node, ()), Event(kind, node))


def _paths(node: ast.AST) -> list[ast.expr]:
    """Return the longest paths that an expression, or a function by itself, reads, but for what it calls."""
    found: list[ast.expr] = []
    queue = [node]
    for part in queue:
        if isinstance(part, _PATH):
            found += [part] if isinstance(part.ctx, ast.Load) else []
            queue += [part.slice] if isinstance(part, ast.Subscript) else []
        elif isinstance(part, ast.Call):
            queue += [*part.args, *part.keywords]
        elif part is node or not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            queue += ast.iter_child_nodes(part)
    return found


def _values(function: Function, node: ast.expr) -> list[ast.expr]:
    """Return the paths that a variable is computed from."""
    if not isinstance(node, ast.Name):
        return []
    bound = function.module.scopes.bound(node)
    values = (bound_value(function.module, binding) for binding in bound)
    return [part for value in values if value is not None for part in _paths(value)]


def _text(node: ast.AST) -> str:
    return node.arg if isinstance(node, ast.arg) else ast.unparse(node)


def _owner(flag: _Flag) -> ast.AST | None:
    scopes = flag.function.module.scopes
    if isinstance(flag.node, ast.arg):
        return flag.function.scope
    assert isinstance(flag.node, ast.Name)
    return scopes.owner(flag.node)
