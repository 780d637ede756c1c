"""Functions that nothing is seen to call, and that run a network: a call of a value that nobody knows may run each that fits."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.facts.paths import all_given
from amp_migrate.modules.binding import bind, fits
from amp_migrate.project import CallSite, Function, Module
from amp_migrate.project.programs import beside
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.beliefs import RUNS_FORWARD

_HOLDS = frozenset({"forward", "module"})
_RUN_BY_NETWORKS = frozenset({"forward", "__call__"})


class Stray(NamedTuple):
    """A call that runs a network which it is given, and the calls inside of which it runs, outer first."""

    function: Function
    call: ast.Call
    around: tuple[tuple[Function, ast.Call], ...]


class Astray:
    """Answers for the calls of a project that are given one of some networks."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._project = program.project

    def of(self, function: Function, call: ast.Call, networks: Collection[int]) -> Iterator[Stray]:
        """Yield the forwards that a call of a function may lead to out of sight, which it gives some networks."""
        given = self._given(function, call, networks)
        unknown = bool(given) and self._is_unknown(function.module, call)
        if given and (unknown or self._project.external(function.module, call.func) is not None):
            for other in self._program.calls.handed(call):
                if other in self._uncalled:
                    names = _all_names(other, given.values())
                    yield from self._within(other, names, ((function, call),))
        if not unknown and not (given and self._is_replaced(call)):
            return
        near = beside(self._project, function.module.path)
        groups = self._program.training.objects.groups(function.module, call.func)
        of_network = not groups.isdisjoint(networks)
        for other in self._meant(function.module, call):
            if of_network and other.name not in _RUN_BY_NETWORKS:
                continue
            site = CallSite(function, call, bound=other.takes_receiver or other.is_class)
            if other.module.path in near and other is not function and fits(site, other):
                taken = bind(site, other).given
                held = ((name, given[node]) for name, node in taken.items() if node in given)
                names = frozenset(name + inner for name, inside in held for inner in inside)
                if any(isinstance(node, ast.Starred) for node in given):
                    names = frozenset(other.parameters.names).difference(other.receivers)
                yield from self._within(other, names, ((function, call),))

    def _given(
        self, function: Function, call: ast.Call, networks: Collection[int]
    ) -> dict[ast.expr, frozenset[str]]:
        """Return the arguments that are networks, hold one or unpack what a call of the function gives it of them.

        Each has how the networks are written behind it, as ``.model``: nothing for one itself.
        """
        groups, known = self._program.training.objects.groups, set(networks)
        itself = frozenset({""})
        found = {n: itself for n in all_given(call) if groups(function.module, n) & known}
        for node in all_given(call):
            if node not in found and (inner := self._held(function.module, node, known)):
                found[node] = inner
        rest = function.parameters.vararg
        for node in call.args:
            if isinstance(node, ast.Starred) and _is_one(node.value, (rest or "",)):
                sites = self._project.callers(function)
                given = ((s.function.module, n) for s in sites for n in all_given(s.call))
                if any(groups(m, n) & known for m, n in given):
                    found[node] = itself
        return found

    def _held(self, module: Module, node: ast.expr, known: set[int]) -> frozenset[str]:
        """Return the attributes in which the object of an expression keeps networks."""
        groups = self._program.training.objects.groups
        return frozenset(
            f".{part.attr}"
            for cls in self._project.instance_classes(module, node)
            for base in cls.mro()
            for method in base.methods.values()
            for part in method.own_nodes
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
            if method.is_receiver(part.value) and groups(method.module, part) & known
        )

    def _is_replaced(self, call: ast.Call) -> bool:
        """Tell whether a decorator out of sight may run another function in the place of what a call names."""
        callees = self._project.callees(call)
        return bool(callees) and all(map(self._project.unseen.replaced, callees))

    def _is_unknown(self, module: Module, call: ast.Call) -> bool:
        """Tell whether nothing tells what a call runs."""
        project, func = self._project, call.func
        if self._program.calls.of(call) or self._program.calls.run(call):
            return False
        if project.constructed(call) or project.external(module, func) is not None:
            return False
        if isinstance(func, ast.Name) and module.scopes.owner(func) is None:
            return False
        held = func.value if isinstance(func, ast.Attribute) else func
        values = project.values
        return not any(values.made_by(module, node) for node in (func, held))

    def _meant(self, module: Module, call: ast.Call) -> Iterator[Function]:
        """Yield the functions that a call may run by how it names what it runs: a method, or any value."""
        named: str | None = None
        values = True
        if isinstance(call.func, ast.Attribute):
            named = call.func.attr
            classes = self._project.instance_classes(module, call.func.value)
            if any(base != "object" for cls in classes for base in cls.externals()):
                return
            values = not any(cls.method(named) for cls in classes)
        for function in self._uncalled:
            if function.name == named or (values and self._is_value(function)):
                yield function

    def _is_value(self, function: Function) -> bool:
        """Tell whether calling a value may run a function: whether it is used other than by a call that is seen."""
        return bool(self._project.escapes(function))

    @cached_property
    def _uncalled(self) -> list[Function]:
        return [
            function
            for function in self._project.functions()
            if function.node is not None
            and not function.is_property
            and function.parameters.names
            and not self._project.callers(function)
        ]

    def _within(
        self,
        function: Function,
        names: frozenset[str],
        around: tuple[tuple[Function, ast.Call], ...],
    ) -> Iterator[Stray]:
        """Yield the forwards of the networks that some parameters are, in a function and in what it hands them to."""
        if any(at is function for at, _ in around) or not names:
            return
        if function.name == "__init__":
            yield from self._kept(function, names)
        for call in function.calls:
            if _network(call.func, names) and all_given(call):
                yield Stray(function, call, around)
            for callee in self._project.callees(call):
                given = self._project.given(call, callee)
                onward = {n + at for n, v in given.items() for at in _behind(v, names)}
                yield from self._within(callee, frozenset(onward), (*around, (function, call)))

    def _kept(self, function: Function, names: frozenset[str]) -> Iterator[Stray]:
        """Yield the forwards of what a constructor that nothing is seen to call keeps in its object."""
        cls = function.cls
        kept = {
            ast.unparse(target)
            for node in function.own_nodes
            if isinstance(node, ast.Assign) and _is_one(node.value, names)
            for target in node.targets
            if isinstance(target, ast.Attribute)
        }
        for method in cls.methods.values() if cls is not None and kept else ():
            if method in self._uncalled:
                for call in method.calls:
                    if _network(call.func, kept) and all_given(call):
                        yield Stray(method, call, ())


def _all_names(function: Function, given: Iterable[frozenset[str]]) -> frozenset[str]:
    """Return each parameter of a function as what may be given for it: none that is its object or its class."""
    inside = frozenset[str]().union(*given)
    names = frozenset(function.parameters.names).difference(function.receivers)
    return frozenset(name + inner for name in names for inner in inside)


def _behind(node: ast.expr, names: Collection[str]) -> Iterator[str]:
    """Yield how some names go on behind an expression; nothing for the expression itself."""
    text = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
    for name in names if text else ():
        if name == text or name.startswith(f"{text}."):
            yield name.removeprefix(text)


def _is_one(node: ast.expr, names: Collection[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _network(func: ast.expr, names: Collection[str]) -> bool:
    """Tell whether one of some names is run: itself, or by a method that runs a network."""
    while isinstance(func, ast.Attribute) and func.attr in _HOLDS | RUNS_FORWARD:
        if ast.unparse(func) in names:
            return True
        func = func.value
    return isinstance(func, ast.Name | ast.Attribute) and ast.unparse(func) in names
