"""Which code that regions run is surely no part of the networks that Apex was given."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from amp_migrate.apex.sites import Kind
from amp_migrate.autocast.evaluated.others import is_network
from amp_migrate.autocast.products import Products
from amp_migrate.autocast.spared.beside import Beside
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import called_on
from amp_migrate.placement.finding.networks import initialized
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Class, Function, Module
from amp_migrate.training.beliefs import MULTIPLYING_LAYERS
from amp_migrate.training.forwards.classes import is_of_network
from amp_migrate.training.region import Part, functions_run, run_by, run_with
from amp_migrate.values.links.onward import Onward

_LAYERS = MULTIPLYING_LAYERS | {"Sequential"}


class Outside:
    """Answers for the code that some parts run, given as its nodes with their functions."""

    def __init__(
        self, unit: Unit, parts: Iterable[Part], nodes: Sequence[tuple[Function, ast.AST]]
    ) -> None:
        self._unit = unit
        self._project = unit.project
        self._nodes = nodes
        self._products = Products(unit.project, sums=True)
        sites = unit.of(Kind.INITIALIZE)
        self._in_halves = any(site.module.tree.older.written for site in sites)
        self._around = {function for function, _ in parts if not is_of_network(function)}
        self.models = initialized(unit)
        self._beside = Beside(unit, self.models)

    def holds(self, function: Function) -> bool:
        """Tell whether a function runs as no part of the networks that are initialized, which hand out fp32.

        What older interfaces put into fp16 handed out fp16.
        """
        if self._in_halves:
            return False
        return function in self._around or function in self._outside

    def is_other(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a call runs a network that multiplies and that Apex was not given, and is no part of one.

        A method of one may be handed others.
        """
        if self._is_beside(function, node):
            return True
        if node not in self._others or function in self._aside:
            return False
        assert isinstance(node, ast.Call)
        return self.holds(function) or self._is_handed(function, node.func, set())

    def _is_beside(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a call runs what an object holds beside the network that Apex was given of it."""
        if not isinstance(node, ast.Call) or not self.holds(function):
            return False
        held = self._beside.run(function, node)
        return held is not None and self._layers(function.module, held)

    def _is_handed(
        self, function: Function, node: ast.expr, seen: set[tuple[Function, str]]
    ) -> bool:
        """Tell whether a parameter only gets what comes from outside of the networks that are initialized."""
        if not isinstance(node, ast.Name) or node.id not in function.parameters.names:
            return False
        if self._in_halves or (function, node.id) in seen:
            return False
        seen.add((function, node.id))
        received = self._project.received(function, node.id)
        given = [(got.function, got.node) for got in received if got.node is not None]
        return bool(given) and all(
            self.holds(where) or self._is_handed(where, value, seen) for where, value in given
        )

    def is_own(self, function: Function) -> bool:
        """Tell whether nothing but the regions runs a function."""
        callers = self._project.callers(function)
        return function in self._around or all(site.call in self.made for site in callers)

    @cached_property
    def made(self) -> set[ast.AST]:
        """The nodes that the regions run."""
        return {node for _, node in self._nodes}

    @cached_property
    def _outside(self) -> set[Function]:
        """The functions that surely run as no part of the networks that are initialized."""
        run = {function for function, _ in self._nodes}
        modular = {f for f in run if is_of_network(f)}
        known = [
            (node, self.is_given(function, node))
            for function, node in self._nodes
            if isinstance(node, ast.Call) and function not in modular
            if set(functions_run(self._project, function.module, node)) & modular
        ]
        given = self._parts(node for node, is_given in known if is_given)
        for function, node in self._nodes:
            if isinstance(node, ast.Call) and function not in modular:
                given |= self._run_of_given(function, node) & modular
        aside = self._parts(node for node, is_given in known if not is_given) - given
        return run - given - run_with(self._project, modular - aside)

    def _run_of_given(self, function: Function, call: ast.Call) -> set[Function]:
        """Return what a method of a network that is initialized runs, but for methods of others that only share a base with it."""
        func = call.func
        if not isinstance(func, ast.Attribute) or not self._project.callees(call):
            return set()
        if not self.is_given(function, call):
            return set()
        classes = self._project.instance_classes(function.module, func.value)
        own = {base for cls in classes for base in cls.mro()}

        def may_run(cls: Class) -> bool:
            alike = own.intersection(cls.mro())
            return not alike or cls in own or not alike.isdisjoint(classes)

        return {f for f in self._parts([call]) if f.cls is None or may_run(f.cls)}

    def is_given(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call may be of a network that is initialized, or of a method of one."""
        groups, module = self._project.values.groups, function.module
        return any(
            self._near.reaches(module, held) or bool(groups(module, held) & self.models)
            for held in (call.func, called_on(call))
            if held is not None
        )

    @cached_property
    def _near(self) -> Onward:
        return self._project.values.onward(self.models)

    def _parts(self, calls: Iterable[ast.Call]) -> set[Function]:
        """Return the functions that run in some calls."""
        return run_by(self._project, ((self._project.module_of(call), call) for call in calls))

    @cached_property
    def _others(self) -> set[ast.Call]:
        """The calls of networks that are surely none of those which are initialized."""
        return {
            node
            for function, node in self._nodes
            if isinstance(node, ast.Call)
            and is_network(self._unit, function.module, node.func)
            and not self.is_given(function, node)
            and self._layers(function.module, node.func)
        }

    def _layers(self, module: Module, func: ast.expr) -> bool:
        """Tell whether a network multiplies: it or its class has such layers, or methods that do; of others it is assumed."""
        made = self._project.values.made_by(module, func)
        if any(not n.startswith("torch.") or n.rpartition(".")[2] in _LAYERS for n in made):
            return True
        classes = closure(
            self._project.instance_classes(module, func),
            lambda c: (p for call in _made(c) for p in self._project.constructed(call)),
        )
        methods = (m for c in classes for base in c.mro() for m in base.methods.values())
        if any(map(self._products.within, methods)):
            return True
        names = (self._project.external(c.module, call.func) for c in classes for call in _made(c))
        return any((name or "").rpartition(".")[2] in _LAYERS for name in names)

    @cached_property
    def _aside(self) -> set[Function]:
        """The functions that run as parts of those networks."""
        return self._parts(self._others)


def _made(cls: Class) -> Iterator[ast.Call]:
    """Yield the calls in the methods of a class, those that make its layers among them."""
    yield from (call for base in cls.mro() for m in base.methods.values() for call in m.calls)
