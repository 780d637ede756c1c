"""Which trained network, or part of one, a call runs by another way than its name: an item, a helper's result, an argument."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from amp_migrate.facts.paths import all_given, bottom, outward, path, tail
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import reachable
from amp_migrate.training.beliefs import (
    METHODS_WITHOUT_CASTS,
    RUN_IN_HALF,
    RUNS_FORWARD,
    RUNS_GIVEN,
)
from amp_migrate.training.bindings import run_first, values_of
from amp_migrate.training.forwards.classes import holds_module
from amp_migrate.training.forwards.forwards import is_housekeeping
from amp_migrate.training.forwards.given import Given, has_no_weights, is_module_class
from amp_migrate.training.forwards.holders import makes_copy
from amp_migrate.training.named import Groups
from amp_migrate.training.objects import Objects

_NONE: Groups = frozenset()


class Run(NamedTuple):
    """The names of what a call may run, and of the trained networks of which that may be a part."""

    networks: Groups = _NONE
    within: Groups = _NONE


class Handed:
    """Finds what a call runs of the networks that optimizers train."""

    def __init__(self, project: Project, objects: Objects, given: Given, trained: Groups) -> None:
        self._project = project
        self._objects = objects
        self._given = given
        self._trained = trained

    def run(self, function: Function, call: ast.Call) -> Run:
        """Return what a call runs by what it is called on, or by what it gives to code that runs it."""
        if not self._trained or self._project.constructed(call):
            return Run()
        if isinstance(call.func, ast.Attribute):
            name = call.func.attr
            keeps_house = is_housekeeping(name.lstrip("_")) or name in METHODS_WITHOUT_CASTS
            if keeps_house and not holds_module(self._project, function.module, call.func):
                return Run()
            if any(map(has_no_weights, outward(call.func))):
                return Run()
            if spelt := self._spelt(function, call.func):
                return Run(self._objects.groups(function.module, call.func), spelt)
        return _either([self.given(function, node) for node in self._nodes(function.module, call)])

    def given(self, function: Function, node: ast.expr) -> Run:
        """Return what runs where something runs what an expression holds."""
        paths = self._paths(function.module, node) if self._trained else ()
        return _either([self._of(function, given, set()) for given in paths])

    def _paths(self, module: Module, node: ast.expr) -> Iterator[ast.expr]:
        """Yield what an expression hands on; of a collection the one item, where that is known."""
        yield from [node] if self._is_item(module, node) else self._given.paths(module, node)

    def _is_item(self, module: Module, node: ast.expr) -> bool:
        is_item = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
        return is_item and self._given.is_module(module, node)

    def _spelt(self, function: Function, func: ast.Attribute) -> Groups:
        """Return the names of the trained network of which a call, as it is spelt, runs a part, or a method that may run some."""
        for part in outward(func.value):
            if function.is_receiver(part) or has_no_weights(part):
                return _NONE
            if found := self._objects.groups(function.module, part) & self._trained:
                return found if self._may_run(func, function.module) else _NONE
        return _NONE

    def _may_run(self, func: ast.Attribute, module: Module) -> bool:
        """Tell whether what is called may run layers: a method in sight calls what is no other method of its object."""
        if path(func) is not None and not self._given.may_have_weights(module, func):
            return False
        call = module.tree.parent(func)
        methods = self._project.callees(call) if isinstance(call, ast.Call) else []
        run = {below for method in methods for below in reachable(self._project, method)}
        return not methods or any(
            below.is_receiver(bottom(node.func))
            and (
                not is_housekeeping(tail(node))
                or holds_module(self._project, below.module, node.func)
            )
            and not self._project.callees(node)
            for below in run
            for node in below.calls
            if isinstance(node.func, ast.Attribute)
        )

    def _nodes(self, module: Module, call: ast.Call) -> Iterator[ast.expr]:
        """Yield what a call may run: what it is called on, or what it is given; in functions of the project that is followed."""
        func = call.func
        if (first := run_first(self._project, module, call)) is not None:
            yield first
            return
        if callees := self._project.callees(call):
            if any(map(_is_of_module, callees)):
                yield from self._object(module, func)
            return
        name = self._project.external(module, func)
        if name is not None:
            last = name.rpartition(".")[2]
            multiplies = name.startswith("torch.") and last in RUN_IN_HALF
            yield from all_given(call) if last in RUNS_GIVEN or multiplies else ()
        elif module.scopes.builtin(func) is None and not makes_copy(self._project, module, call):
            yield from self._object(module, func)
            yield from (a for a in all_given(call) if self._is_module(module, a))

    def _object(self, module: Module, func: ast.expr) -> Iterator[ast.expr]:
        """Yield what is called, and the object whose method that may be, if it may run layers."""
        if not isinstance(func, ast.Attribute):
            yield func
        elif self._may_run(func, module):
            yield from (func, func.value)

    def _is_module(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an expression is a trained network, or a known module that may be a part of one."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return False
        groups = self._objects.groups(module, node)
        known = self._given.is_module(module, node)
        return bool(groups & self._trained) or (known and not groups.isdisjoint(self._parts))

    def _of(self, function: Function, held: ast.expr, seen: set[ast.expr]) -> Run:
        """Return what runs with the object of an expression."""
        module = function.module
        seen.add(held)
        groups = self._objects.groups(module, held)
        if whole := groups & self._trained:
            return Run(whole)
        if self._is_method(module, held) and isinstance(held, ast.Attribute):
            return self._of(function, held.value, seen)
        bound = {one: None for name in groups for one in self._methods.get(name, ())}
        if bound:
            return _either([self._of(*one, seen) for one in bound if one[1] not in seen])
        for part in outward(held):
            if function.is_receiver(part) and _is_of_module(function):
                return Run()  # its parts are told apart by the object whose method runs
            if has_no_weights(part):
                break
            if found := self._objects.groups(module, part) & self._trained:
                return Run(groups, found)
            if self._is_item(module, part):
                break
        values = list(values_of(module, held)) if isinstance(held, ast.Name) else []
        spelt = [v for v in values if isinstance(v, ast.Attribute) and v not in seen]
        if spelt:
            found_of = [self._of(function, value, seen) for value in spelt]
            return Run(
                groups,
                _NONE.union(*(one.within | one.networks & self._trained for one in found_of)),
            )
        if isinstance(held, ast.Attribute) and self._given.is_module(module, held.value):
            return Run()  # the part of another one, of the same class
        found = _NONE.union(*(self._parts[name] for name in groups if name in self._parts))
        return Run(groups, found) if found else Run()

    def _is_method(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an expression is a method of an object by which that runs, as it is handed on: ``model.forward``."""
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return False
        if node.attr in RUNS_FORWARD:
            return True
        meant = self._project.meanings(module, node) if node.attr in self._named else ()
        return any(isinstance(one, Function) and not one.is_property for one in meant)

    @cached_property
    def _named(self) -> frozenset[str]:
        """The names of the methods of networks."""
        return frozenset(f.name for f in self._project.functions() if _is_of_module(f))

    @cached_property
    def _methods(self) -> dict[int, list[tuple[Function, ast.expr]]]:
        """The names of what holds a method that is handed on, with what that is a method of."""
        found: dict[int, list[tuple[Function, ast.expr]]] = {}
        for module, node in self._project.nodes(ast.Attribute):
            up = module.tree.parent(node)
            called = isinstance(up, ast.Call) and up.func is node
            if not called and self._is_method(module, node):
                whole = self._project.function_of(module, node), node.value
                for name in self._objects.groups(module, node):
                    found.setdefault(name, []).append(whole)
        return found

    @cached_property
    def _parts(self) -> dict[int, Groups]:
        """The names of what is spelt as a part of a trained network, with the names of that."""
        found: dict[int, Groups] = {}
        for module, node in self._project.nodes(ast.Attribute):
            if isinstance(node.ctx, ast.Load) and not has_no_weights(node):
                self._add(found, module, node, node.value)
        for module, call in self._project.nodes(ast.Call):
            if call.args and module.scopes.builtin(call.func) == "getattr":
                self._add(found, module, call, call.args[0])
        return found

    def _add(
        self, found: dict[int, Groups], module: Module, part: ast.expr, whole: ast.expr
    ) -> None:
        for above in outward(whole):
            if own := self._objects.groups(module, above) & self._trained:
                for name in self._objects.groups(module, part) - self._trained:
                    found[name] = found.get(name, _NONE) | own
                return


def _is_of_module(function: Function) -> bool:
    return function.cls is not None and is_module_class(function.cls)


def _either(runs: Sequence[Run]) -> Run:
    """Return what one or another of some may run."""
    networks = _NONE.union(*(run.networks for run in runs))
    return Run(networks, _NONE.union(*(run.within for run in runs)) - networks)
