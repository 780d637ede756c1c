"""The functions that a training touches, and what each of their calls may run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property

from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import YIELDS
from amp_migrate.flow.cfg.build import Graphs
from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.project import Anonymous, Class, Function, Project
from amp_migrate.project.once import once
from amp_migrate.protocol.calls.called import GIVES_ITEMS, Calls
from amp_migrate.protocol.code.exceptions import Exceptions
from amp_migrate.protocol.code.span import Entry, Span
from amp_migrate.training.bindings import generators
from amp_migrate.training.contexts import Choice, Context, choice, context, decorated
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.recognise import Training

_OF_CASTS = (
    *(
        Kind.PART,
        Kind.SHARED,
        Kind.REFUSES_CASTS,
        Kind.RECORDS,
        Kind.CLEAR_CASTS,
        Kind.WEIGHT_WRITE,
        Kind.RUNS_WRITTEN,
    ),
    Kind.OTHER_STEP,
)
TAKES = (ast.For, ast.AsyncFor, ast.comprehension, ast.withitem)
_ENTERS = ("enter_context", "enter_async_context")


class Read:
    """What was read of the code of a project, whatever happens in it."""

    def __init__(self, project: Project) -> None:
        self.exceptions = Exceptions(project)
        self.calls = Calls(project)
        self.graphs = Graphs(self.exceptions.swallows, at_once=True)
        self.methods: dict[ast.Call, list[tuple[Class, Function]]] = {}
        self.contexts: dict[ast.expr, Context | None] = {}
        self.of: dict[Function, Graph] = {}
        self.suspending: dict[Function, bool] = {}
        self.suspended: dict[ast.Call, list[tuple[ast.Call, Function]]] = {}


class Program:
    """What a machine runs over: functions with their graphs, events, contexts and calls."""

    def __init__(self, project: Project, training: Training, read: Read) -> None:
        self.project = project
        self.training = training
        self.exceptions = read.exceptions
        self.calls = read.calls
        self.graphs = read.graphs
        self._read = read
        self.answers: dict[object, object] = {}

    @cached_property
    def of_gradients(self) -> Program:
        """The same program with the events alone that gradients or a GradScaler may take part in.

        A forward is one where an exception of it is survived, which leaves an optimizer without gradients.
        """
        return Program(self.project, self.training.only(self._of_gradients), self._read)

    @cached_property
    def of_steps(self) -> Program:
        """The same program with these events, and the steps of what may be an optimizer or a scheduler."""

        def takes_part(function: Function, event: Event) -> bool:
            return event.kind is Kind.OTHER_STEP or self._of_gradients(function, event)

        return Program(self.project, self.training.only(takes_part), self._read)

    def of_events(
        self, happening: Mapping[Function, Mapping[ast.AST, tuple[Event, ...]]]
    ) -> Program:
        """Return the same program in which other events happen."""
        return Program(self.project, self.training.instead(happening), self._read)

    def _of_gradients(self, function: Function, event: Event) -> bool:
        if event.kind is Kind.FORWARD:
            return self.exceptions.survived(function, event.node)
        return event.kind not in _OF_CASTS

    @cached_property
    def relevant(self) -> frozenset[Function]:
        """The functions in which an event happens, and those from which one of them may be reached."""
        found = set(self.training.by_function) | self._casting
        return frozenset(closure(found, self.calls.holders))

    def leading(self, wanted: Callable[[Event], bool]) -> frozenset[Function]:
        """Return the functions of which a run may come to one of some events."""
        found = {
            function
            for function, held in self.training.by_function.items()
            if any(wanted(event) for events in held.values() for event in events)
        }
        return frozenset(closure(found, self._held_by.__getitem__))

    def above(self, *functions: Function) -> frozenset[Function]:
        """Return some functions and lambdas, and those of which a run may come to one of them."""
        return frozenset(closure(functions, self.calls.holders))

    def enters(self, node: ast.AST, functions: AbstractSet[Function]) -> bool:
        """Tell whether a call, a read attribute or a context runs one of some functions by itself."""
        run = self.calls.at(node)
        if isinstance(node, ast.Call):
            run = [*run, *self.calls.of(node), *self.calls.run(node), *self.calls.handed(node)]
        return not functions.isdisjoint(run)

    @cached_property
    def _held_by(self) -> dict[Function, tuple[Function, ...]]:
        """The functions in which each one of the training may run, near by."""
        return {function: tuple(self.calls.holders(function)) for function in self.relevant}

    @cached_property
    def _casting(self) -> set[Function]:
        """The functions that hold their callers in a context while they wait at a `yield`."""
        found = set()
        for module, item in self.project.nodes(ast.withitem):
            function = self.calls.body(module, item)
            if self.suspends(function) and self.context(function, item.context_expr):
                found.add(function)
        return found

    @cached_property
    def entering(self) -> frozenset[Function]:
        """The functions that enter autocast or leave their callers in a context, and those that may come to one of them."""
        found = set(self._casting)
        for module, item in self.project.nodes(ast.withitem):
            function = self.calls.body(module, item)
            if self.context(function, item.context_expr) is Context.CASTS:
                found.add(function)
        for module, call in self.project.nodes(ast.Call):
            if _is_entered(call):
                found.add(self.calls.body(module, call))
        found |= {f for f in self.relevant if Context.CASTS in self.decorated(f)}
        return frozenset(closure(found, self.calls.holders))

    def graph(self, function: Function) -> Graph:
        """Return the control-flow graph of a function."""
        found = self._read.of.get(function)
        if found is None:
            found = self._read.of[function] = self.graphs.of(function.scope)
        return found

    def events(self, function: Function, node: ast.AST) -> tuple[Event, ...]:
        """Return what happens at a node."""
        return self.training.of(function).get(node, ())

    def happens(self, function: Function, node: ast.AST) -> Iterator[Event]:
        """Yield what happens at a node by itself: what is handed to a function in sight is followed there."""
        for event in self.events(function, node):
            if event.kind is not Kind.HANDED or not self._runs_known(node):
                yield event

    def _runs_known(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and bool(self.calls.of(node))

    def callees(self, call: ast.Call) -> list[Function]:
        """Return the functions of a training that a call may run."""
        return [f for f in self.calls.of(call) if f in self.relevant]

    def runs(self, node: ast.AST) -> list[Function]:
        """Return the functions of a training that run where an attribute is read, or a context begins or ends."""
        relevant = self.relevant  # which finds where they run
        return [f for f in self.calls.at(node) if f in relevant]

    def methods(self, call: ast.Call) -> list[tuple[Class, Function]]:
        """Return the classes that the object of a method call may have, and the method that each of them runs."""
        if call not in self._read.methods:
            self._read.methods[call] = self._found_methods(call)
        return self._read.methods[call]

    def _found_methods(self, call: ast.Call) -> list[tuple[Class, Function]]:
        if not isinstance(call.func, ast.Attribute) or not self.project.callees(call):
            return []
        module = self.project.module_of(call)
        classes = self.project.instance_classes(module, call.func.value)
        every = dict.fromkeys(sub for cls in classes for sub in (cls, *cls.subclasses()))
        made = self.project.lookup.made([*every])
        found = [(cls, cls.method(call.func.attr)) for cls in made]
        reached = self.project.callees(call)
        return [(cls, method) for cls, method in found if method is not None and method in reached]

    def handed(self, call: ast.Call) -> list[Function]:
        """Return the functions of a training that a call out of the project may run, or keep."""
        return [f for f in self.calls.handed(call) if f in self.relevant]

    def context(self, function: Function, node: ast.expr) -> Context | None:
        """Return what entering the context of an expression does."""
        if node not in self._read.contexts:
            self._read.contexts[node] = context(self.project, function.module, node)
        return self._read.contexts[node]

    def decides(self, function: Function, node: ast.expr) -> Choice | None:
        """Return what decides which of two contexts an expression is."""
        return choice(self.project, function.module, node)

    def entered(self, function: Function, call: ast.Call) -> Context | None:
        """Return the context that a call enters for the rest of an ``ExitStack``."""
        return self.context(function, call.args[0]) if _is_entered(call) else None

    def decorated(self, function: Function) -> tuple[Context, ...]:
        """Return the contexts around every run of a function."""
        return decorated(self.project, function)

    def suspends(self, function: Function) -> bool:
        """Tell whether a function is a generator, or a context manager made of one."""
        if function not in self._read.suspending:
            self._read.suspending[function] = function.node is not None and any(
                isinstance(p.node, YIELDS) for p in self.graph(function).points
            )
        return self._read.suspending[function]

    def suspended(self, call: ast.Call) -> list[tuple[ast.Call, Function]]:
        """Return the generators of a training that a call makes, there or in what it calls, each with the call that names it."""
        if call not in self._read.suspended:
            runs = self.calls.of(call)
            made = [(call, function) for function in runs if self.suspends(function)]
            if not made and all(map(self.hands_on, runs)):
                made = generators(self.project, call)
            self._read.suspended[call] = made
        return [pair for pair in self._read.suspended[call] if pair[1] in self.relevant]

    def hands_on(self, function: Function) -> bool:
        """Tell whether a generator that a function returns runs in a loop or `with` that calls it, or what returns that."""
        above = list(closure([function], self._handing_on))
        sites = [site for holder in above for site in self.project.callers(holder)]
        ups = [site.function.module.tree.parent(site.call) for site in sites]
        taken = [isinstance(up, TAKES) for up in ups]
        return any(taken) and all(
            here or isinstance(up, ast.Return) for here, up in zip(taken, ups, strict=True)
        )

    def _handing_on(self, function: Function) -> Iterator[Function]:
        for site in self.project.callers(function):
            if isinstance(site.function.module.tree.parent(site.call), ast.Return):
                yield site.function

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The functions where programs begin, and whether code out of reach calls them."""
        found = [
            (f, f.node is not None)
            for f in self.relevant
            if _is_module(f)
            or f.name == GIVES_ITEMS
            or not any(h in self.relevant for h in self.calls.holders(f) if h is not f)
        ]
        return tuple(sorted(found, key=lambda item: (item[0].module.path, item[0].qualname)))

    @property
    def span(self) -> Span:
        """All programs of the project."""
        return Span(self.entries)


def _is_entered(call: ast.Call) -> bool:
    """Tell whether a call enters a context for the rest of an ``ExitStack``."""
    enters = isinstance(call.func, ast.Attribute) and call.func.attr in _ENTERS
    return enters and bool(call.args)


def _is_module(function: Function) -> bool:
    return function.node is None and not isinstance(function, Anonymous)


@once
def program_of(project: Project) -> Program:
    """Return the program of a project, read once."""
    read = Read(project)
    return Program(project, Training(project, read.graphs, read.calls.body), read)
