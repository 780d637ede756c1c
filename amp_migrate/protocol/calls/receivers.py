"""The objects whose methods calls run, told apart where they surely are two."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.facts.closure import Gathered
from amp_migrate.facts.paths import is_super
from amp_migrate.flow.assumption import Assumption
from amp_migrate.project import Class, Function, Module
from amp_migrate.protocol.calls.arguments import is_variable
from amp_migrate.protocol.calls.handed import handed_of
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.named import Groups
from amp_migrate.training.reads.own import is_decorated
from amp_migrate.values.objects import Instance

_DEEPEST = 4  # objects within objects; one that holds its kind would have parts without end


class Object(NamedTuple):
    """An object by the names that may hold it; `around` is the one that has made it for itself, where that is known."""

    groups: Groups
    around: Object | None = None


def may_be_same(one: Object | None, other: Object | None) -> bool:
    """Tell whether two objects may be one; None may be any."""
    if one is None or other is None:
        return True
    return bool(one.groups & other.groups) and may_be_same(one.around, other.around)


class Receivers:
    """Finds the object whose method a call runs, where it matters which one: where the method runs parts of it."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._project = program.project
        self._own = program.training.own
        self._handed = handed_of(program).run
        values = program.project.values
        self._selves = [values.nodes.object(c) for m in self._modules() for c in m.classes.values()]
        self._known: dict[ast.Call, tuple[Groups, bool] | None] = {}
        self._parts = Gathered(self._of_same_object, self._runs_parts)

    def of(
        self, caller: Function, call: ast.Call, around: Object | None, known: Assumption
    ) -> Object | None:
        """Return the object whose method a call in a method of `around` runs, by what is known there; None where it may be any."""
        receiver = self._receiver(caller.module, call)
        if receiver is None or not any(map(self._parts.of, self._program.callees(call))):
            return None
        if is_super(receiver) or self._own.is_receiver(caller, receiver):
            return around
        if call not in self._known:
            self._known[call] = self._names(caller, receiver)
        names = self._known[call]
        if names is None:
            return None
        groups, own = names
        if is_variable(receiver, self._project):
            groups = self._handed.named(receiver.id, known) or groups
        return Object(groups, around if own and _depth(around) < _DEEPEST else None)

    def _of_same_object(self, function: Function) -> Iterator[Function]:
        """Yield what a method runs of the object that it is called on, and of parts that this has made for itself."""
        for call in function.calls:
            callees = self._program.callees(call)
            receiver = self._receiver(function.module, call) if callees else None
            if receiver is not None and (
                is_super(receiver)
                or self._own.is_receiver(function, receiver)
                or self._own.is_own(function, receiver)
            ):
                yield from callees

    def _runs_parts(self, function: Function) -> bool:
        held = self._program.training.of(function).values()
        return any(event.own for events in held for event in events)

    def _modules(self) -> list[Module]:
        return list(self._project.modules.values())

    def _receiver(self, module: Module, call: ast.Call) -> ast.expr | None:
        """Return the expression of the object: what is called itself, or what the method is taken from."""
        func, values = call.func, self._project.values
        if values.instance_classes(module, func):
            return func
        if not isinstance(func, ast.Attribute):
            return func if isinstance(func, ast.Name) else None
        if is_super(func.value):
            return func.value
        classes = values.instance_classes(module, func.value)
        return func.value if any(cls.method(func.attr) for cls in classes) else None

    def _names(self, caller: Function, receiver: ast.expr) -> tuple[Groups, bool] | None:
        values = self._project.values
        groups = values.groups(caller.module, receiver)
        if groups & {values.graph.find(node) for node in self._selves}:
            return None
        facts = values.facts(caller.module, receiver)
        made = [fact for fact in facts if isinstance(fact, Instance) and fact.exact]
        if not made or any(fact.cls in self._kept for fact in made):
            return None
        return groups, self._own.is_own(caller, receiver)

    @cached_property
    def _kept(self) -> set[Class]:
        """The classes that may hand out one object again and again."""
        return {
            cls
            for module in self._modules()
            for cls in module.classes.values()
            if is_decorated(cls.node) or cls.method("__new__")
        }


def _depth(node: Object | None) -> int:
    return 0 if node is None else 1 + _depth(node.around)
