"""Networks that share weights with others: a part of one is stored in them, or they are made of parts of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.facts.paths import all_given, bottom, is_super, tail
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import reachable
from amp_migrate.training.forwards.forwards import is_housekeeping
from amp_migrate.training.forwards.given import Given, has_no_weights, is_module_class
from amp_migrate.training.named import Groups
from amp_migrate.training.objects import Objects

_PUTS = frozenset(
    {"add_module", "append", "extend", "insert", "register_module", "register_parameter"}
)
_SETS = frozenset({"setattr"})


class _Place(NamedTuple):
    """An expression, and the file it stands in."""

    module: Module
    node: ast.expr


class _Link(NamedTuple):
    """What shares weights: the names of what holds a part, and of what that is a part of, the part's own included."""

    holder: Groups
    source: Groups


class Sharing:
    """Finds with which trained networks the object of an expression shares weights, whichever of the two was there first."""

    def __init__(self, project: Project, objects: Objects) -> None:
        self._project = project
        self._objects = objects
        self._given = Given(project, objects)

    def networks(self, module: Module, func: ast.expr) -> Groups:
        """Return the names of the networks, and their parts, with which what a call is of shares weights."""
        if not self._links:
            return frozenset()
        held = self._objects.groups(module, func)
        if isinstance(func, ast.Attribute) and self._is_method(module, func):
            held |= self._objects.groups(module, func.value)
        found: set[int] = set()
        for link in self._links:
            found |= link.source if link.holder & held else frozenset()
            found |= link.holder if link.source & held else frozenset()
        return frozenset(found)

    def within(self, function: Function, func: ast.expr) -> Groups:
        """Return the names of the trained network of which a call runs a part, or a method that may run some."""
        if not isinstance(func, ast.Attribute) or is_housekeeping(func.attr.lstrip("_")):
            return frozenset()
        for part in _prefixes(func.value):
            if function.is_receiver(part) or has_no_weights(part):
                return frozenset()
            if found := self._objects.groups(function.module, part) & self._trained:
                return found if self._may_run(func, function.module) else frozenset()
        return frozenset()

    def _may_run(self, func: ast.Attribute, module: Module) -> bool:
        """Tell whether what is called may run layers: a method in sight calls what is no other method of its object."""
        if not self._given.may_have_weights(module, func):
            return False
        call = module.tree.parent(func)
        methods = self._project.callees(call) if isinstance(call, ast.Call) else []
        run = {below for method in methods for below in reachable(self._project, method)}
        return not methods or any(
            below.is_receiver(bottom(node.func))
            and not is_housekeeping(tail(node))
            and not self._project.callees(node)
            for below in run
            for node in below.own_nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        )

    def _is_method(self, module: Module, func: ast.Attribute) -> bool:
        """Tell whether an attribute may be a method of a network, not something else that this holds."""
        if self._project.values.facts(module, func.value):
            return self._given.may_be_module(module, func.value)
        return func.attr not in self._objects.stored

    @cached_property
    def _links(self) -> list[_Link]:
        """The pairs of which one is trained."""
        trained = self._trained
        pairs = list(dict.fromkeys(self._pairs())) if trained else []
        for pair in pairs:
            list(map(self._names, pair))  # the graph stays as it is while it is asked
        found = []
        for holder, source in (map(self._names, pair) for pair in pairs):
            if (holder | source) & trained and holder - source and source - holder:
                found.append(_Link(holder - source, source - holder))
        return found

    @cached_property
    def _trained(self) -> Groups:
        return frozenset(name for o in self._objects.optimizers for name in o.networks or ())

    def _names(self, place: _Place) -> Groups:
        groups = (
            self._objects.groups(place.module, part)
            for part in _prefixes(place.node)
            if self._given.may_be_module(place.module, part)
        )
        return frozenset().union(*groups)

    def _pairs(self) -> Iterator[tuple[_Place, _Place]]:
        """Yield what holds a part with the path to the part."""
        for module, holder, value in self._held():
            function = self._project.function_of(module, holder)
            for source in self._given.paths(module, value):
                yield from self._called(function, holder, source)

    def _held(self) -> Iterator[tuple[Module, ast.expr, ast.expr]]:
        """Yield what something is put into, or that is made of something, with what that is."""
        for stores in self._objects.stored.values():
            for module, target, value in stores:
                yield module, target.value, value
        for module, item in self._project.nodes(ast.Subscript):
            given = getattr(module.tree.statement(item), "value", None)
            if isinstance(item.ctx, ast.Store) and isinstance(given, ast.expr):
                yield module, item.value, given
        for module, call in self._project.nodes(ast.Call):
            yield from ((module, *pair) for pair in self._by_call(module, call))

    def _by_call(self, module: Module, call: ast.Call) -> Iterator[tuple[ast.expr, ast.expr]]:
        func = call.func
        if isinstance(func, ast.Attribute) and is_super(func.value) and func.attr == "__init__":
            function = self._project.function_of(module, call)
            if function.cls and is_module_class(function.cls) and not self._project.callees(call):
                yield from ((func.value, value) for value in all_given(call))
        elif isinstance(func, ast.Attribute) and func.attr in _PUTS and call.args:
            yield func.value, call.args[-1]
        elif tail(call) in _SETS and len(call.args) == 3:
            yield call.args[0], call.args[2]
        elif self._given.keeps(module, call):
            yield from ((call, value) for value in all_given(call))

    def _called(
        self, function: Function, holder: ast.expr, source: ast.expr
    ) -> Iterator[tuple[_Place, _Place]]:
        """Yield the two as each call of their function gives them, where both are known of it."""
        names = [_variable(function, end) for end in (holder, source)]
        given = {*function.parameters.names, *function.receivers}
        sites = self._project.calls_of(function) if given & {*names} else []
        for site in sites:
            arguments = self._project.arguments(site, function)
            made = site.call if site.constructor else _receiver(site.call)
            if function.receiver is not None and made is not None:
                arguments = {**arguments, function.receiver: made}
            ends = [
                _Place(self._project.module_of(arguments[name]), arguments[name])
                if name in arguments
                else _Place(function.module, node)
                for name, node in zip(names, (holder, source), strict=True)
            ]
            for part in self._given.paths(*ends[1]):
                yield ends[0], _Place(ends[1].module, part)
        if not sites:
            yield _Place(function.module, holder), _Place(function.module, source)


def _variable(function: Function, node: ast.expr) -> str:
    """Return the name of the variable that an expression leads from; the receiver for ``super()``."""
    end = list(_prefixes(node))[-1]
    if is_super(end):
        return function.receiver or ""
    return end.id if isinstance(end, ast.Name) else ""


def _receiver(call: ast.Call) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _prefixes(node: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression and what it is spelt as a part of."""
    yield node
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
        yield node
