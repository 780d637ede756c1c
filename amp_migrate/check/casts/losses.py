"""Whether what computes a loss that Apex scaled has casts, wherever the network is that it runs."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from amp_migrate.check.casts.callables import spelled
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.networks import Networks
from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Key, Side, changed, key
from amp_migrate.check.events.traces import Label
from amp_migrate.facts.paths import all_given
from amp_migrate.project import Function
from amp_migrate.training.bindings import values_of

_Begun = Mapping[Function, frozenset[Casts]]


class Losses:
    """Follows the losses of both texts back to the calls that compute them, each within its function."""

    def __init__(self, old: Side, new: Side, networks: Networks) -> None:
        self._old = old
        self._new = new
        self._networks = networks

    def uncast(
        self, cast: Collection[ast.Call], native: Casting, begun: _Begun
    ) -> Iterator[tuple[Function, ast.Call]]:
        """Yield the first call that computes a loss without casts: a method of a network, or any where none does with them.

        `cast` are the calls of the old text that ran while Apex was on.
        """
        wanted: dict[Key, set[Label]] = {}
        for function, call, label in self._scaled:
            if call in cast:
                wanted.setdefault(key(function), set()).add(label)
        for function in begun:
            labels = wanted.get(key(function))
            if labels and begun[function] == {Casts.OFF}:
                before = self._old.functions[key(function)]
                made = (call for f in before for call in self._old.program.graph(f).calls)
                ran = {spelled(call) for call in made if call in cast}
                found = self._of_function(function, labels, native, begun)
                yield from ((f, c) for f, c in found if spelled(c) in ran)

    @cached_property
    def _scaled(self) -> list[tuple[Function, ast.Call, Label]]:
        """The backward passes of the old text on scaled losses."""
        return [
            (function, call, label)
            for function in self._old.project.functions()
            for call, label in self._old.of_kind(function, Does.BACKWARD)
            if self._old.labels.is_scaled(function, call)
        ]

    def _of_function(
        self, function: Function, labels: set[Label], native: Casting, begun: _Begun
    ) -> Iterator[tuple[Function, ast.Call]]:
        name = key(function)
        introduced = changed(self._old, self._new).get(name, frozenset())
        for backward, label in self._new.of_kind(function, Does.BACKWARD, introduced=introduced):
            if label not in labels:
                continue
            calls = list(self._computing(function, backward))
            plain = [c for c in calls if not self._may_cast(function, c, native, begun)]
            parts = [c for c in plain if self._is_method(function, c)]
            runs = [c for c in calls if self._may_run(function, c)]
            nothing = not any(
                c in runs or self._new.project.callees(c) for c in set(calls) - set(plain)
            )
            yield from ((function, c) for c in (parts or (runs if nothing else []))[:1])

    def _computing(self, function: Function, backward: ast.Call) -> Iterator[ast.Call]:
        """Yield the calls of a function whose results the loss of a backward is computed from."""
        assert isinstance(backward.func, ast.Attribute)
        queue: list[ast.AST] = [backward.func.value, *backward.args]
        seen: set[ast.AST] = set()
        for part in queue:
            if part in seen:
                continue
            seen.add(part)
            if isinstance(part, ast.Name):
                if isinstance(part.ctx, ast.Load):
                    queue += values_of(function.module, part)
            elif not isinstance(part, ast.Call):
                queue += ast.iter_child_nodes(part)
            else:
                yield part
                queue += all_given(part)
                if isinstance(part.func, ast.Attribute) and not self._is_method(function, part):
                    queue.append(part.func.value)

    def _may_run(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call may run a network: what it calls is a variable, or an attribute of the object."""
        project, module = self._new.project, function.module
        func = call.func
        if project.callees(call) or project.external(module, func) is not None:
            return False
        if any(m.endswith("Loss") for m in project.values.made_by(module, func) or ()):
            return False
        if isinstance(func, ast.Name):
            found = module.scopes.bound(func)
            return any(not isinstance(binding, ast.alias | ast.ClassDef) for binding in found)
        return isinstance(func, ast.Attribute) and function.is_receiver(func.value)

    def _is_method(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call is one of a method of an initialized network, whose code is not in sight."""
        before = self._old.functions.get(key(function), ())
        return any(spelled(call) in self._networks.methods(f) for f in before)

    def _may_cast(self, function: Function, call: ast.Call, native: Casting, begun: _Begun) -> bool:
        callees = self._new.project.callees(call)
        return native.at(function, call, begun[function]) is not Casts.OFF or native.within(callees)
