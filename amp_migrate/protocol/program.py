"""The functions that a training touches, and what each of their calls may run."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from amp_migrate.flow.cfg.build import Graphs
from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.flow.cfg.points import Edge, EdgeKind, Point
from amp_migrate.flow.cfg.points import Kind as PointKind
from amp_migrate.project import Class, Function, Project
from amp_migrate.training.contexts import Context, context, decorated
from amp_migrate.training.events import Event
from amp_migrate.training.recognise import Training

_ALWAYS = frozenset(
    {
        PointKind.ENTRY,
        PointKind.EXIT,
        PointKind.RAISED,
        PointKind.TEST,
        PointKind.NEXT,
        PointKind.YIELD,
        PointKind.ENTER,
        PointKind.LEAVE,
    }
)
_BINDS = frozenset({PointKind.STORE, PointKind.DELETE, PointKind.UNBIND, PointKind.IMPORT})
_MANAGERS = {"contextmanager", "asynccontextmanager"}


class Program:
    """What a machine runs over: graphs of functions, their events, contexts and calls."""

    def __init__(self, project: Project) -> None:
        self._edges: dict[Function, dict[Point, tuple[Edge, ...]]] = {}
        self._methods: dict[ast.Call, list[tuple[Class, Function]]] = {}
        self._asked: dict[ast.expr, bool | None] = {}
        self.project = project
        self.graphs = Graphs()
        self.training = Training(project, self.graphs)

    @cached_property
    def relevant(self) -> frozenset[Function]:
        """The functions in which an event happens, and those from which one of them may be reached."""
        found = set(self.training.by_function)
        queue = list(found)
        for function in queue:
            holders = [site.function for site in self.project.callers(function)]
            holders += self._mentioned.get(function, [])
            for holder in holders:
                if holder not in found:
                    found.add(holder)
                    queue.append(holder)
        return frozenset(found)

    @cached_property
    def _mentioned(self) -> dict[Function, list[Function]]:
        """The functions that hand another one to a call out of the project, which may call it there."""
        found: dict[Function, list[Function]] = {}
        for call, given in self._handed.items():
            holder = self.project.function_of(self.project.module_of(call), call)
            for function in given:
                found.setdefault(function, []).append(holder)
        return found

    @cached_property
    def _handed(self) -> dict[ast.Call, tuple[Function, ...]]:
        """The functions that calls out of the project are given."""
        found: dict[ast.Call, tuple[Function, ...]] = {}
        for module in self.project.modules.values():
            for call in module.tree.nodes(ast.Call):
                if self.project.callees(call):
                    continue
                given = [*call.args, *(k.value for k in call.keywords)]
                names = [a for a in given if isinstance(a, ast.Name | ast.Attribute)]
                functions = [
                    meaning
                    for name in names
                    for meaning in self.project.meanings(module, name)
                    if isinstance(meaning, Function)
                ]
                if functions:
                    found[call] = tuple(functions)
        return found

    def graph(self, function: Function) -> Graph:
        """Return the control-flow graph of a function."""
        return self.graphs.of(function.scope)

    def edges(self, function: Function, point: Point) -> tuple[Edge, ...]:
        """Return the edges out of a point, those of exceptions apart, each to the next point that matters."""
        known = self._edges.setdefault(function, {})
        if point not in known:
            graph = self.graph(function)
            known[point] = tuple(
                edge._replace(target=self._onward(function, graph, edge.target))
                for edge in graph.successors(point)
                if edge.kind is not EdgeKind.EXCEPTION
            )
        return known[point]

    def _onward(self, function: Function, graph: Graph, point: Point) -> Point:
        seen = {point}
        while not self._matters(function, point):
            out = [e for e in graph.successors(point) if e.kind is not EdgeKind.EXCEPTION]
            if len(out) != 1 or out[0].target in seen or out[0].target.kind is PointKind.NEXT:
                break
            point = out[0].target
            seen.add(point)
        return point

    def _matters(self, function: Function, point: Point) -> bool:
        """Tell whether something may happen at a point: an event, a call, a test, or a name that tests read."""
        node = point.node
        if point.kind in _ALWAYS or self.events(function, node):
            return True
        if point.kind is PointKind.CALL and isinstance(node, ast.Call):
            return bool(self.project.callees(node)) or node in self._handed
        if point.kind in _BINDS:
            return bool(bound_names(node) & self._watched)
        return False

    @cached_property
    def _watched(self) -> frozenset[str]:
        """The names and attributes whose value decides a test, the method of a call, or whether a loss is scaled."""
        found = {name for names in self._unclear.values() for name in names}
        for function in self.relevant:
            for node in ast.walk(function.scope):
                if isinstance(node, ast.If | ast.While | ast.IfExp):
                    if self.trains(function, node):
                        found |= names_in(node.test)
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    if len(self.methods(node)) > 1:
                        found |= names_in(node.func.value)
        return frozenset(found)

    def events(self, function: Function, node: ast.AST) -> tuple[Event, ...]:
        """Return what happens at a node."""
        return self.training.by_function.get(function, {}).get(node, ())

    def asks_for_scaler(self, function: Function, test: ast.expr) -> bool | None:
        """Return how a test of whether there is a GradScaler comes out with AMP on; None for any other test."""
        if test not in self._asked:
            self._asked[test] = self._asks(function, test)
        return self._asked[test]

    def _asks(self, function: Function, test: ast.expr) -> bool | None:
        subject, positive = test, True
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            subject, positive = test.operand, False
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            against = test.comparators[0]
            if not isinstance(against, ast.Constant) or against.value is not None:
                return None
            subject, positive = test.left, isinstance(test.ops[0], ast.IsNot | ast.NotEq)
        if not isinstance(subject, ast.Name | ast.Attribute):
            return None
        if self.training.objects.scaler(function.module, subject) is None:
            return None
        return positive

    def scales(self, function: Function, name: ast.Name, value: ast.expr | None) -> bool | None:
        """Return whether what a name is bound to is a scaled loss, if a backward that may be either needs to know."""
        if value is None or name.id not in self._unclear.get(function, ()):
            return None
        return self.training.losses.scaled(function, value)

    @cached_property
    def _unclear(self) -> dict[Function, set[str]]:
        """The names of losses of which the way decides whether they are scaled."""
        found: dict[Function, set[str]] = {}
        for function, events in self.training.by_function.items():
            for held in events.values():
                for name in (e.loss for e in held if e.scaled is None and e.loss is not None):
                    found.setdefault(function, set()).add(name)
        return found

    def trains(self, function: Function, node: ast.AST) -> bool:
        """Tell whether an event, or a call that may lead to one, stands in a node."""
        events = self.training.by_function.get(function, {})
        return any(
            part in events or (isinstance(part, ast.Call) and bool(self.callees(part)))
            for part in ast.walk(node)
        )

    def visits_optimizers(self, function: Function, loop: ast.AST) -> bool:
        """Tell whether a loop goes over optimizers: each of them meets its body once."""
        return loop in self._visiting.get(function, ())

    def of_visited(self, function: Function, event: Event) -> bool:
        """Tell whether an event concerns the optimizer that a loop around it visits."""
        named = event.named()
        return named is not None and any(
            _binds(loop, named) for loop in self._loops(function, event.node)
        )

    @cached_property
    def _visiting(self) -> dict[Function, set[ast.AST]]:
        found: dict[Function, set[ast.AST]] = {}
        for function, events in self.training.by_function.items():
            for node, held in events.items():
                for named in filter(None, (event.named() for event in held)):
                    loops = {x for x in self._loops(function, node) if _binds(x, named)}
                    found.setdefault(function, set()).update(loops)
        return found

    def _loops(self, function: Function, node: ast.AST) -> list[ast.For | ast.AsyncFor]:
        ancestors = function.module.tree.ancestors(node)
        return [up for up in ancestors if isinstance(up, ast.For | ast.AsyncFor)]

    def callees(self, call: ast.Call) -> list[Function]:
        """Return the functions of a training that a call may run."""
        return [f for f in self.project.callees(call) if f in self.relevant]

    def methods(self, call: ast.Call) -> list[tuple[Class, Function]]:
        """Return the classes that the object of a method call may have, and the method that each of them runs."""
        if call not in self._methods:
            self._methods[call] = self._found_methods(call)
        return self._methods[call]

    def _found_methods(self, call: ast.Call) -> list[tuple[Class, Function]]:
        if not isinstance(call.func, ast.Attribute) or not self.project.callees(call):
            return []
        module = self.project.module_of(call)
        classes = self.project.instance_classes(module, call.func.value)
        every = {sub for cls in classes for sub in (cls, *cls.subclasses())}
        found = [(cls, cls.method(call.func.attr)) for cls in every]
        reached = self.project.callees(call)
        return [(cls, method) for cls, method in found if method is not None and method in reached]

    def handed(self, call: ast.Call) -> list[Function]:
        """Return the functions of a training that a call out of the project may run, or keep."""
        return [f for f in self._handed.get(call, ()) if f in self.relevant]

    def context(self, function: Function, node: ast.expr) -> Context | None:
        """Return what entering the context of an expression does."""
        return context(self.project, function.module, node)

    def decorated(self, function: Function) -> tuple[Context, ...]:
        """Return the contexts around every run of a function."""
        return decorated(self.project, function)

    def suspends(self, function: Function) -> bool:
        """Tell whether a function is a generator, or a context manager made of one."""
        return function.node is not None and any(
            isinstance(p.node, ast.Yield | ast.YieldFrom) for p in self.graph(function).points
        )

    def manages(self, function: Function) -> bool:
        """Tell whether a generator is made a context manager by its decorator."""
        decorators = function.node.decorator_list if function.node is not None else []
        names = {
            d.attr if isinstance(d, ast.Attribute) else getattr(d, "id", "") for d in decorators
        }
        return bool(names & _MANAGERS)

    @cached_property
    def entries(self) -> tuple[tuple[Function, bool], ...]:
        """The functions where programs begin, and whether code out of reach calls them."""
        called = self._called_from(self.relevant)
        found = [(f, f.node is not None) for f in self.relevant if f not in called]
        return tuple(sorted(found, key=lambda item: (item[0].module.path, item[0].qualname)))

    def _called_from(self, functions: Iterable[Function]) -> set[Function]:
        return {
            f
            for f in functions
            if f.node is not None
            and (
                any(s.function in self.relevant for s in self.project.callers(f))
                or f in self._mentioned
            )
        }


def names_in(node: ast.AST) -> set[str]:
    """Return the names and attributes that stand in an expression."""
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


def bound_names(node: ast.AST) -> set[str]:
    """Return the name that a point binds, or all that may be meant where it binds an item."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute):
        return {node.attr}
    if isinstance(node, ast.alias):
        return {(node.asname or node.name).partition(".")[0]}
    if isinstance(node, ast.Subscript):
        return names_in(node)
    name = getattr(node, "name", None)
    return {name} if isinstance(name, str) else set()


def _binds(loop: ast.For | ast.AsyncFor, named: ast.expr) -> bool:
    """Tell whether the target of a loop binds a name that an expression reads."""
    bound = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    return any(isinstance(n, ast.Name) and n.id in bound for n in ast.walk(named))
