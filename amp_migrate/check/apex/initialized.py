"""Where casts were on under Apex: behind `amp.initialize`, in whatever runs then."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from functools import cached_property

from amp_migrate.check.apex.courses import (
    Onward,
    Outcomes,
    courses,
    handed,
    put_off,
    runs_each,
)
from amp_migrate.check.apex.disabling import Disabling, States
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.apex.imported import as_import, imports_of
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.project import Anonymous, Function
from amp_migrate.project.imported import importers
from amp_migrate.project.once import kept
from amp_migrate.project.programs import run_from
from amp_migrate.project.reach import reachable, upwards
from amp_migrate.project.relatives import Same, runs, same
from amp_migrate.protocol.code.program import Program

OFF: States = frozenset({False})
ON: States = frozenset({True})
UNSURE: States = frozenset({None})
_NOTHING = Facts()
_RUN = (Kind.CALL, Kind.IMPORT)

_Run = tuple[Function, bool]
"""A function, and whether it is the top-level code of a file that is imported."""


class Initialized:
    """Follows a run with AMP on through the functions of a project."""

    def __init__(self, program: Program, calls: Collection[ast.Call], known: Facts) -> None:
        self._program = program
        self._project = program.project
        self._calls = calls
        self._known = known
        self._disabling = Disabling(program, known)
        initializing = (self._project.module_of(c) for c in calls)
        functions = [
            self._project.function_of(m, c) for m, c in zip(initializing, calls, strict=True)
        ]
        self._leads = upwards(self._project, *functions)
        self._leads |= self._lambdas()
        self._imports = imports_of(program)
        self._add_importers()
        self._courses = courses(self._project)
        self._outcomes: dict[_Run, Outcomes] = {}
        self._called: dict[tuple[Function, States], list[tuple[ast.Call, States]]] = {}
        self._same: Same | None = None
        self.spared = set[Function]()

    def _lambdas(self) -> set[Function]:
        """Return the lambdas that come to the calls: what stands in one belongs to the function around it until it is called."""
        found: set[Function] = set()
        for function in self._program.calls.anonymous:
            made = self._program.graph(function).calls
            if any(c in self._calls or self._leads & {*self._project.callees(c)} for c in made):
                found.add(function)
        return found

    def _callees(self, call: ast.Call) -> list[Function]:
        """Return the functions that a call runs, and the lambdas that come to the calls."""
        run = self._program.calls.run(call) if self._leading else ()
        found = [*self._project.callees(call), *(f for f in run if f in self._leading)]
        return found if self._same is None else self._same.run(call, found)

    @cached_property
    def _leading(self) -> set[Function]:
        return {f for f in self._leads if isinstance(f, Anonymous)}

    def _add_importers(self) -> None:
        """Let the functions lead to the calls as well that import a file which comes to them."""
        known: set[Function] = set()
        while found := [f for f in self._leads - known if f.node is None]:
            known.update(found)
            for top in found:
                if self._imports.may_come_to(top, self._leads, self._calls):
                    self._leads |= upwards(self._project, *self._importers(top))

    def _importers(self, top: Function) -> list[Function]:
        """Return the functions that import the file whose top-level code a function is."""
        return [importer for importer, _ in importers(self._project).get(top, ())]

    def entries(self) -> list[Function]:
        """Return the functions that nothing is seen to call, and a run of which may initialize."""
        project = self._project
        return [f for f in project.functions() if self.leads(f) and not project.callers(f)]

    def leads(self, function: Function) -> bool:
        """Tell whether a run of a function may initialize."""
        return function in self._leads

    def may_run(self, entries: Collection[Function] | None = None) -> bool:
        """Tell whether any of the calls may run, in a run that begins at one of some functions."""
        return any(
            not found <= OFF
            for (function, _), found in self._exits.items()
            if entries is None or function in entries
        )

    def may_come(self, entries: Collection[Function]) -> bool:
        """Tell whether any of the calls may run, in a run that begins so, or in what that hands to a library to run."""
        return self.may_run(entries) or any(
            not self._exits.get((started, False), OFF) <= OFF
            for function, start in self.spread(entries).items()
            for call, _ in self.calls(function, start)
            if not self._program.calls.run(call)
            for started in handed(self._program, call)
        )

    @cached_property
    def _exits(self) -> dict[_Run, States]:
        """Whether Apex may be on behind each function that leads to a call, where it was off before."""
        exits: dict[_Run, States] = {}
        queue = dict.fromkeys(run for function in self._leads for run in _runs(function))
        while queue:
            run = function, imported = next(iter(queue))
            del queue[run]
            graph = self._program.graph(function)
            found = self._flow(run, OFF, exits).get(graph.exit, frozenset())
            if found != exits.get(run, frozenset()):
                exits[run] = found
                callers = [site.function for site in self._project.callers(function)]
                if function in self._leading:
                    callers = list(self._program.calls.holders(function))
                if imported:
                    callers += self._importers(function)
                queue |= dict.fromkeys(run for f in callers for run in _runs(f))
        return exits

    def _flow(self, run: _Run, start: States, exits: dict[_Run, States]) -> dict[Point, States]:
        """Return whether Apex may be on when each point of a function is about to run."""
        graph = self._program.graph(run[0])
        onward = self._onward(run)
        before: dict[Point, States] = {graph.entry: start}
        queue = [graph.entry]
        while queue:
            point = queue.pop()
            held = before[point]
            after = self._after(point, held, exits) if point.kind in _RUN else held
            for target in onward[point]:
                held = before.get(target, frozenset())
                if not after <= held:
                    before[target] = held | after
                    queue.append(target)
        return before

    def _onward(self, run: _Run) -> Onward:
        """Return the points that may run behind each point of a function, without an exception."""
        return self._courses.onward(run[0], self._told(run))

    def _told(self, run: _Run) -> Outcomes:
        """Return how the tests of a function come out."""
        if run not in self._outcomes:
            known = self._known.at(run[0])
            known = as_import(known) if run[1] else known
            self._outcomes[run] = self._courses.outcomes(run[0], known)
        return self._outcomes[run]

    def _after(self, point: Point, states: States, exits: dict[_Run, States]) -> States:
        node = point.node
        if point.kind is Kind.IMPORT:
            return self._imported(point, states, exits)
        if not isinstance(node, ast.Call) or node in self._calls:
            return ON if node in self._calls else states
        callees = self._callees(node)
        found: set[bool | None] = set()
        for callee in callees:
            ends = OFF
            if callee in self._leads:
                refused = self._known.exclude(self._project, node, callee)
                ends = UNSURE if refused else exits.get((callee, False), frozenset())
            found |= states if False in ends else frozenset()
            found |= {state or None for state in states} if None in ends else frozenset()
            found |= {True} if True in ends else frozenset()
        return frozenset(found) if callees else states

    def _imported(self, point: Point, states: States, exits: dict[_Run, States]) -> States:
        """Return whether Apex may be on behind an import; a file that turns it on ran before where it is on."""
        for top in self._imports.tops(point):
            if top in self._leads and False in states:
                ends = exits.get((top, True), frozenset())
                states = states - OFF | ends
        return states

    def spread(
        self, entries: Iterable[Function], behind: Iterable[Function] = ()
    ) -> dict[Function, States]:
        """Return whether Apex may be on when each function that some entries reach begins; `behind` begin with it on."""
        begins: dict[Function, States] = dict.fromkeys(entries, OFF) | dict.fromkeys(behind, ON)
        files = run_from(self._project, begins)
        queue = list(begins)
        while queue:
            function = queue.pop()
            for call, states in self.calls(function, begins[function]):
                callees = self._program.calls.run(call)
                one = states == OFF or runs_each(call, callees)
                sure = one if callees else states == ON
                states = states if sure else UNSURE
                apart = self._apart(function, call, begins[function]) if len(callees) > 1 else {}
                self.spared |= {f for f in apart if apart[f] == OFF != states}
                for callee in callees or handed(self._program, call):
                    held, found = begins.get(callee, frozenset()), apart.get(callee, states)
                    if not found <= held and callee.module.path in files:
                        begins[callee] = held | found
                        queue.append(callee)
        return begins

    def _apart(self, function: Function, call: ast.Call, start: States) -> dict[Function, States]:
        """Return whether Apex may be on where a call runs each method, if its object is of the class of that all along."""
        found: dict[Function, States] = {}
        exits = self._exits
        for kind in same(self._project, function, call) if function in self._leads else ():
            self._same = kind
            flow = self._flow((function, False), start, exits)
            held = [states for point, states in flow.items() if point.node is call]
            for method in kind.run(call, self._project.callees(call)):
                found[method] = found.get(method, frozenset()).union(*held)
        self._same = None
        return {f: states if len(states) == 1 else UNSURE for f, states in found.items()}

    def initializes(self, call: ast.Call) -> bool:
        """Tell whether a call is one of those that initialize, or may come to one."""
        return call in self._calls or any(map(self.leads, self._project.callees(call)))

    def comes_first(self, function: Function) -> bool:
        """Tell whether a function is a method of objects that come to one of the calls while they are made."""
        method = function.method
        if method.cls is None or method.receiver is None or method.is_class:
            return False
        makers = [
            cls.method("__init__")
            for cls in (method.cls, *method.cls.subclasses())
            if runs(cls, method)
        ]
        return all(
            maker is not None
            and self._exits.get((maker, False)) == ON
            and method not in reachable(self._project, maker)
            for maker in makers
        )

    def states(self, function: Function, start: States) -> dict[Point, States]:
        """Return whether Apex may be on at each point that a run of a function may come to."""
        if function not in self._leads:
            return dict.fromkeys(self._reached(function), start)
        flow = self._flow((function, False), start, self._exits)
        return {p: states if len(states) == 1 else UNSURE for p, states in flow.items()}

    def calls(self, function: Function, start: States) -> list[tuple[ast.Call, States]]:
        """Return the calls of a function, with whether Apex may be on at each."""
        asked = function, start
        if asked not in self._called:
            found = put_off(self._program, function, self.states(function, start))
            self._called[asked] = [
                (point.node, self._disabling.at(function, point.node, states))
                for point, states in found.items()
                if isinstance(point.node, ast.Call) and point.kind is Kind.CALL
            ]
        return self._called[asked]

    def operators(
        self, function: Function, start: States, kind: type[ast.operator]
    ) -> list[tuple[ast.BinOp | ast.AugAssign, States]]:
        """Return the operations of one kind in a function, as ``@`` and ``@=``, with whether Apex may be on at each."""
        return [
            (point.node, self._disabling.at(function, point.node, states))
            for point, states in self.states(function, start).items()
            if isinstance(point.node, ast.BinOp | ast.AugAssign)
            if isinstance(point.node.op, kind)
        ]

    def _reached(self, function: Function) -> list[Point]:
        """Return the points that a run of a function may come to, without an exception or behind one that is caught."""
        return self._courses.reached(function, self._told((function, False)))


def initialized(
    program: Program, calls: Iterable[ast.Call], known: Facts = _NOTHING
) -> Initialized:
    """Return where casts are on behind some calls under some facts, worked out once for the same ones."""
    made = frozenset(calls)
    asked = Initialized, program, made, known
    return kept(program.project, asked, lambda: Initialized(program, made, known))


def _runs(function: Function) -> list[_Run]:
    return [(function, False)] + [(function, True)] * (function.node is None)
