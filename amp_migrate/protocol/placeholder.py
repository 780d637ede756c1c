"""GradScalers that are off until another takes their place, and what still holds them then."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from amp_migrate.facts.scopes import targets_of
from amp_migrate.flow.cfg.points import Kind as At
from amp_migrate.flow.cfg.points import Point
from amp_migrate.project import Function, Module
from amp_migrate.protocol.binding import Variable
from amp_migrate.protocol.certain.memory import CertainMemory
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.faults import Breach, Fault, Place
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.protocol.run.blind import Search
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.contexts import is_off
from amp_migrate.training.events import Event, Kind

_OFF, _GIVEN, _ON = Kind.SET_SCALE, Kind.ABSENT, Kind.MAKE_SCALER
"""An attribute gets a GradScaler that is off, an object is made with that, the attribute gets one that may be on."""


def stale(program: Program) -> Iterator[Fault]:
    """Yield a fault for every read that passes a GradScaler on which another replaces later, and for one never read."""
    found = _Placeholders(program)
    for variable in found.variables():
        for load in found.passed_on(variable):
            place = Place(variable.module.path, load.lineno)
            yield Fault(Breach.PLACEHOLDER, place, (place,))
    yield from _kept_by_others(program, found)
    for module, name in found.idle():
        place = Place(module.path, name.lineno)
        yield Fault(Breach.IDLE, place, (place,))


class _Kept(Unmoved):
    """Follows an attribute with a GradScaler that is off, until one that is on takes its place."""

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """No object was made with what the attribute holds."""
        return (False,)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return whether an object keeps the GradScaler; it goes wrong where another one is made then."""
        if event.kind is _ON:
            return Moved((False,), (Breach.PLACEHOLDER,) if state else ())
        return Moved((event.kind is _GIVEN,))


def _kept_by_others(program: Program, found: _Placeholders) -> Iterator[Fault]:
    """Yield a fault where an attribute gets another GradScaler once an object was made with the one that is off."""
    for name in sorted(found.attributes(on=False) & found.attributes(on=True)):
        happening = found.handed(name)
        if any(e.kind is _GIVEN for held in happening.values() for (e,) in held.values()):
            own = program.of_events(happening)
            yield from Search(own, CertainMemory(own)).run(_Kept(), own.span).faults()


def replaced(program: Program) -> frozenset[int]:
    """Return the numbers of the GradScalers that are off only in variables which get one that is on."""
    objects = program.training.objects
    found = _Placeholders(program)
    known = set(found.variables())
    attributes = found.attributes(on=False) & found.attributes(on=True)
    off = [
        (objects.scaler(m, c), bool(found.kept(m, c) & known or found.held(m, c) & attributes))
        for m, c in objects.made_scalers
        if is_off(c)
    ]
    numbers = {number for number, _ in off if number is not None}
    return frozenset(n for n in numbers if all(gone for other, gone in off if other == n))


class _Placeholders:
    """Follows the variables of a program that hold a GradScaler which is off from the start."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._objects = program.training.objects

    def variables(self) -> list[Variable]:
        """Return the names with a GradScaler that is off, and one that is not."""
        off: set[Variable] = set()
        on: set[Variable] = set()
        for module, call in self._objects.made_scalers:
            (off if is_off(call) else on).update(self.kept(module, call))
        return sorted(off & on, key=lambda v: (v.module.path, v.name))

    def kept(self, module: Module, call: ast.Call) -> set[Variable]:
        """Return the variables that a GradScaler is made for."""
        names = [(module.scopes.owner(name), name.id) for name in self._targets(module, call)]
        return {Variable(module, scope, name) for scope, name in names if scope is not None}

    def attributes(self, on: bool) -> set[int]:
        """Return the names of the attributes for which GradScalers are made that are on, or off."""
        made = [(m, c) for m, c in self._objects.made_scalers if is_off(c) is not on]
        return {name for module, call in made for name in self.held(module, call)}

    def held(self, module: Module, call: ast.Call) -> set[int]:
        """Return the names of the attributes that a GradScaler is made for."""
        up = module.tree.parent(call)
        kept = (t for t in targets_of(up) if isinstance(t, ast.Attribute))
        names = (self._objects.name(module, t) for t in kept)
        return {name for name in names if name is not None}

    def handed(self, name: int) -> dict[Function, dict[ast.AST, tuple[Event, ...]]]:
        """Return where an attribute gets a GradScaler, and where an object of the project is made with what it holds."""
        project = self._program.project
        found: dict[Function, dict[ast.AST, tuple[Event, ...]]] = {}
        for module, call in self._objects.made_scalers:
            if name in self.held(module, call):
                kind = _OFF if is_off(call) else _ON
                own = found.setdefault(project.function_of(module, call), {})
                own[call] = (Event(kind, call),)
        for module, call in project.nodes(ast.Call):
            given = [*call.args, *(k.value for k in call.keywords)]
            held = [a for a in given if isinstance(a, ast.Attribute)]
            if any(self._objects.name(module, a) == name for a in held):
                if any(f.name == "__init__" for f in project.callees(call)):
                    own = found.setdefault(project.function_of(module, call), {})
                    own[call] = (Event(_GIVEN, call),)
        return found

    def idle(self) -> Iterator[tuple[Module, ast.Name]]:
        """Yield the local names of GradScalers that nothing reads, where another of that name is off."""
        made = [(m, c, n) for m, c in self._objects.made_scalers for n in self._targets(m, c)]
        off = {(m.path, name.id) for m, call, name in made if is_off(call)}
        for module, call, name in made:
            scope = module.scopes.owner(name)
            if is_off(call) or (module.path, name.id) not in off or scope is module.tree.module:
                continue
            if not module.scopes.reads(scope, name.id):
                yield module, name

    def _targets(self, module: Module, call: ast.Call) -> list[ast.Name]:
        names = (n for n in module.tree.nodes(ast.Name) if isinstance(n.ctx, ast.Store))
        return [name for name in names if bound_value(module, name) is call]

    def passed_on(self, variable: Variable) -> Iterator[ast.Name]:
        """Yield the reads that hand the object on, behind which the variable may get another."""
        for function in self._program.relevant | {variable.module.top}:
            if function.module is not variable.module:
                continue
            graph = self._program.graph(function)
            copies = [p for p in graph.points if self._copies(variable, p)]
            if not copies:
                continue
            made = [p for p in graph.points if self._replaces(variable, p, set())]
            order = graph.order(exceptions=False)
            for point in copies:
                later = any(order.may_reach(point, other) for other in made)
                if later and not order.must_pass(graph.entry, point, made):
                    assert isinstance(point.node, ast.Name)
                    yield point.node

    def _copies(self, variable: Variable, point: Point) -> bool:
        if point.kind is not At.LOAD or not variable.stands_at(point):
            return False
        up = variable.module.tree.parent(point.node)
        return not isinstance(up, ast.Attribute | ast.Compare | ast.If | ast.While | ast.Expr)

    def _replaces(self, variable: Variable, point: Point, above: set[Function]) -> bool:
        """Tell whether a point may give the variable a GradScaler that is on, by itself or in what it runs."""
        if point.kind is At.STORE and variable.stands_at(point):
            made = point.value
            return isinstance(made, ast.Call) and not is_off(made)
        if point.kind is not At.CALL or not isinstance(point.node, ast.Call):
            return False
        for callee in self._program.calls.of(point.node):
            if callee in above:
                continue
            above.add(callee)
            points = self._program.graph(callee).points
            if any(self._replaces(variable, p, above) for p in points):
                return True
        return False
