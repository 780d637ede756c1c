"""The functions that a training touches, and what each of their calls may run."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from amp_migrate.flow.cfg.build import Graphs
from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.project import Function, Project
from amp_migrate.training.contexts import Context, context, decorated
from amp_migrate.training.events import Event
from amp_migrate.training.recognise import Training

_MANAGERS = {"contextmanager", "asynccontextmanager"}


class Program:
    """What a machine runs over: graphs of functions, their events, contexts and calls."""

    def __init__(self, project: Project) -> None:
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

    def events(self, function: Function, node: ast.AST) -> tuple[Event, ...]:
        """Return what happens at a node."""
        return self.training.by_function.get(function, {}).get(node, ())

    def callees(self, call: ast.Call) -> list[Function]:
        """Return the functions of a training that a call may run."""
        return [f for f in self.project.callees(call) if f in self.relevant]

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
        names = {d.attr if isinstance(d, ast.Attribute) else getattr(d, "id", "") for d in decorators}
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
            and (any(s.function in self.relevant for s in self.project.callers(f)) or f in self._mentioned)
        }
