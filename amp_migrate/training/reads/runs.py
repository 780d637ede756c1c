"""Runs of networks whose weights something writes by hand: a copy that autocast made then is stale after the write."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import all_given, tail
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import RUNS_GIVEN, RUNS_NO_FORWARD
from amp_migrate.training.bindings import values_of
from amp_migrate.training.named import Groups
from amp_migrate.training.objects import Objects
from amp_migrate.training.reads.unseen import is_known
from amp_migrate.training.reads.writes import (
    NOTHING_NAMED,
    Concerned,
    Writes,
    concerned,
    joined,
    spelt,
)


class Runs:
    """Asks whether a call may run a network whose weights something writes."""

    def __init__(self, project: Project, objects: Objects, writes: Writes) -> None:
        self._project = project
        self._objects = objects
        self._writes = writes

    def of(self, function: Function, call: ast.Call, name: str | None) -> Concerned:
        """Return the names, of those of written networks, of what a call may run; `name` is that of what is outside.

        A callee of which nothing is known may be any of them.
        """
        written = self._writes.networks
        if not written:
            return NOTHING_NAMED
        module, func, callees = function.module, call.func, self._project.callees(call)
        own = self._objects.groups(module, func)
        found = [Concerned(own, frozenset())]
        if not (isinstance(func, ast.Attribute) and self._is_quiet(func.attr, callees)):
            method = not own and isinstance(func, ast.Attribute)
            for value in _meant(module, func):
                found.append(self._concerned(function, value, own, method=method))
        if not callees:
            if name is None and self._is_unknown(module, call):
                return Concerned(written, frozenset())
            if tail(call) in RUNS_GIVEN or name is not None or not is_known(call, name):
                for given in all_given(call):
                    named = self._objects.groups(module, given)
                    found.append(self._concerned(function, given, named))
        run = joined(found)
        return Concerned(run.networks & written, run.within & written)

    def _is_unknown(self, module: Module, call: ast.Call) -> bool:
        """Tell whether nothing is known of a callee, nor of an object with an attribute like that of a written network."""
        if is_known(call, None):
            return False
        held = isinstance(call.func, ast.Attribute) and call.func.attr in self._writes.fields
        if isinstance(call.func, ast.Attribute) and not held:
            return False
        return not self._project.values.facts(module, call.func)

    def _is_quiet(self, method: str, callees: list[Function]) -> bool:
        """Tell whether a method runs nothing of its object, or something that is followed by itself."""
        return method in RUNS_NO_FORWARD or any(map(self._writes.by, callees))

    def _concerned(
        self, function: Function, value: ast.expr, named: Groups, *, method: bool = False
    ) -> Concerned:
        """Return the names of an expression, or of the object whose `method` it is, and of what it is spelt as a part of."""
        within: Groups = frozenset()
        own = function.cls is not None and bool(self._writes.own & {*function.cls.mro()})
        for place, part in enumerate(spelt(value)):
            if own or not function.is_receiver(part.value):
                groups = self._objects.groups(function.module, part.value)
                if method and not place:
                    named |= groups
                else:
                    within |= groups
        return concerned(named, within)


def _meant(module: Module, func: ast.expr) -> Iterator[ast.expr]:
    """Yield a callee, and what a name of it was bound to."""
    yield func
    if isinstance(func, ast.Name):
        yield from values_of(module, func)
