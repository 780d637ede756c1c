"""Networks that share weights with others: a part of one is stored in them, or they are made of parts of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from itertools import product
from typing import NamedTuple

from amp_migrate.facts.paths import all_given, called_on, is_super, outward, tail
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.forwards.given import Given, is_module_class
from amp_migrate.training.forwards.handed import Handed, Run
from amp_migrate.training.named import Groups
from amp_migrate.training.objects import Objects
from amp_migrate.values.values import Near

_PUTS = frozenset(
    {"add_module", "append", "extend", "insert", "register_module", "register_parameter", "update"}
)
_NONE: Groups = frozenset()
_SETS = frozenset({"setattr"})


class _Place(NamedTuple):
    """An expression, and the file it stands in."""

    module: Module
    node: ast.expr


class Sharing:
    """Finds with which trained networks the object of an expression shares weights, whichever of the two was there first."""

    def __init__(self, project: Project, objects: Objects) -> None:
        self._project = project
        self._objects = objects
        self._given = Given(project, objects)
        self._found: dict[tuple[Groups, Groups], Run] = {}
        self._handed = Handed(project, objects, self._given, objects.trained)

    def networks(self, module: Module, func: ast.expr) -> Run:
        """Return the names of the shared networks and parts that a call runs whole, and of those that share some part with it."""
        whole = func.value if isinstance(func, ast.Attribute | ast.Subscript) else func
        if not (self._may_share(module, func) or self._may_share(module, whole)):
            return Run()
        named = self._objects.groups(module, func)
        around = _NONE
        if isinstance(func, ast.Subscript) or (
            isinstance(func, ast.Attribute) and self._is_method(module, func)
        ):
            around = self._objects.groups(module, func.value) - named
        if (named, around) not in self._found:
            self._found[named, around] = self._sharing(named, around)
        return self._found[named, around]

    def _sharing(self, named: Groups, around: Groups) -> Run:
        """Return what shares weights with some names, without the names around them."""
        linked = {run for one in named | around for run in self._linked.get(one, ())}
        networks = _NONE.union(*(run.networks for run in linked)) - around
        return Run(networks, _NONE.union(*(run.within for run in linked)) - networks)

    def run(self, function: Function, call: ast.Call) -> Run:
        """Return what a call runs of trained networks by another way than their names."""
        return self._handed.run(function, call)

    def given(self, function: Function, node: ast.expr) -> Run:
        """Return what runs where a function gives something to what runs it."""
        linked, held = self.networks(function.module, node), self._handed.given(function, node)
        networks = linked.networks | held.networks
        return Run(networks, (linked.within | held.within) - networks)

    def _is_method(self, module: Module, func: ast.Attribute) -> bool:
        """Tell whether an attribute may be a method of a network, not a part of it or something else that this holds."""
        if not self._project.values.facts(module, func.value):
            return func.attr not in self._objects.stored
        if self._given.is_module(module, func):
            return False
        return self._given.may_be_module(module, func.value)

    @cached_property
    def _linked(self) -> dict[int, list[Run]]:
        """What shares weights with each name: what it holds, and what holds it or a part of it; one of the two is trained."""
        trained = self._objects.trained
        pairs = list(filter(self._may_concern, dict.fromkeys(self._pairs()))) if trained else []
        places = list(dict.fromkeys(place for pair in pairs for place in pair))
        for place in places:
            self._names(place)  # the graph stays as it is while it is asked
        names = {place: self._names(place) for place in places}
        links = dict.fromkeys((names[holder], names[source]) for holder, source in pairs)
        found: dict[int, list[Run]] = {}
        for holder, source in links:
            held, sharing = holder.networks | holder.within, source.networks | source.within
            if (held | sharing) & trained and not (held <= sharing or sharing <= held):
                for name in held - sharing:
                    found.setdefault(name, []).append(
                        Run(source.networks - held, source.within - held)
                    )
                for name in sharing - held:
                    own = source.networks & {name}
                    found.setdefault(name, []).append(Run(own, held - sharing))
        return found

    @cached_property
    def _may_share(self) -> Near:
        return self._project.values.near(self._linked)

    def _may_concern(self, pair: tuple[_Place, _Place]) -> bool:
        """Tell whether one of two places may name a trained network, or be spelt as a part of one."""
        parts = [(place.module, part) for place in pair for part in outward(place.node)]
        return any(self._objects.may_be_trained(*part) for part in parts)

    def _names(self, place: _Place) -> Run:
        """Return the names of an expression, and of what it is spelt as a part of."""
        groups = [
            self._objects.groups(place.module, part)
            for part in outward(place.node)
            if self._given.may_be_module(place.module, part)
        ]
        own = next(filter(None, groups), _NONE)
        return Run(own, own.union(*groups) - own)

    def _pairs(self) -> Iterator[tuple[_Place, _Place]]:
        """Yield what holds a part with the path to the part."""
        seen: set[tuple[ast.expr, ast.expr]] = set()
        for module, holder, value in self._held():
            function = self._project.function_of(module, holder)
            wholes = self._given.paths(module, holder) if isinstance(holder, ast.Name) else [holder]
            for whole, source in product(wholes, self._given.paths(module, value)):
                yield from self._called(function, whole, source, seen)

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
        self,
        function: Function,
        holder: ast.expr,
        source: ast.expr,
        seen: set[tuple[ast.expr, ast.expr]],
    ) -> Iterator[tuple[_Place, _Place]]:
        """Yield the two as each call of their function gives them, where both are known of it; those in `seen` are done."""
        seen.add((holder, source))
        names = [_variable(function, end) for end in (holder, source)]
        given = {*function.parameters.names, *function.receivers}
        sites = self._project.calls_of(function) if given & {*names} else []
        for site in sites:
            arguments = self._project.arguments(site, function)
            made = site.call if site.constructor else called_on(site.call)
            if function.receiver is not None and made is not None:
                arguments = {**arguments, function.receiver: made}
            ends = [
                _Place(self._project.module_of(arguments[name]), arguments[name])
                if name in arguments
                else _Place(function.module, node)
                for name, node in zip(names, (holder, source), strict=True)
            ]
            above, whole = site.function, ends[0].node
            alike = arguments.keys() >= {*names} and self._stand_in(above, *ends)
            for part in self._given.paths(*ends[1]):
                if alike and (whole, part) not in seen:
                    yield from self._called(above, whole, part, seen)
                else:
                    yield ends[0], _Place(ends[1].module, part)
        if not sites:
            yield _Place(function.module, holder), _Place(function.module, source)

    def _stand_in(self, function: Function, *places: _Place) -> bool:
        """Tell whether names of a function are all that some places hold."""
        return all(
            isinstance(place.node, ast.Name) and self._project.function_of(*place) is function
            for place in places
        )


def _variable(function: Function, node: ast.expr) -> str:
    """Return the name of the variable that an expression leads from; the receiver for ``super()``."""
    end = list(outward(node))[-1]
    if is_super(end):
        return function.receiver or ""
    return end.id if isinstance(end, ast.Name) else ""
