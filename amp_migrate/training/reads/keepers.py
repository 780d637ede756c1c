"""Objects of code out of sight that were given something, which their methods may use whenever they run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property

from amp_migrate.facts.paths import all_given
from amp_migrate.project import Module, Project
from amp_migrate.training.beliefs import LEAVE_HOLDERS_ALONE, RUNS_NO_FORWARD
from amp_migrate.training.named import Call
from amp_migrate.training.objects import Objects
from amp_migrate.training.steppers import makes_schedule


class Keepers:
    """Finds the calls that gave an object something: the one that made it, and those of its methods."""

    def __init__(
        self, project: Project, objects: Objects, leaves_alone: Callable[[Module, ast.Call], bool]
    ) -> None:
        self._project = project
        self._objects = objects
        self._leaves_alone = leaves_alone

    def given(self, module: Module, call: ast.Call) -> Iterator[Call]:
        """Yield the calls that gave something to the object whose method a call runs; none of what is known to be harmless."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr in RUNS_NO_FORWARD:
            return
        receiver = call.func.value
        made = self._project.values.made_by(module, receiver)
        if any(n.partition(".")[0] in LEAVE_HOLDERS_ALONE or makes_schedule(n) for n in made):
            return
        groups = self._objects.groups(module, receiver)
        if not groups or self._is_known(groups):
            return
        yield from self._objects.results.from_outside(dict.fromkeys(made), groups)
        for where, other, held in self._handing:
            if other is not call and groups & held:
                yield where, other

    @cached_property
    def stepped(self) -> frozenset[int]:
        """The numbers of the optimizers that something in sight steps: of all others, whoever steps them has the gradients too."""
        calls = self._objects.method_calls.get("step", ())
        asked = [
            (module, part) for module, call in calls for part in (*_receiver(call), *call.args)
        ]
        held = [self._objects.groups(module, part) for module, part in asked]
        every = frozenset().union(*held)
        return frozenset(o.number for o in self._objects.optimizers if o.groups & every)

    def _is_known(self, groups: frozenset[int]) -> bool:
        """Tell whether an object is an optimizer, a network of one, or a GradScaler."""
        if any(groups & scaler.groups for scaler in self._objects.scalers):
            return True
        return any(
            groups & o.groups or groups & (o.networks or set()) for o in self._objects.optimizers
        )

    @cached_property
    def _handing(self) -> tuple[tuple[Module, ast.Call, frozenset[int]], ...]:
        """The calls of methods out of sight that are given what may hold an optimizer, with the names of their objects."""
        optimizers = self._objects.optimizers
        asked = {g for o in optimizers for g in (*o.groups, *(o.networks or ()))}
        may_hold = self._project.values.near(asked, held=True)
        return tuple(
            (module, call, self._objects.groups(module, call.func.value))
            for calls in self._objects.method_calls.values()
            for module, call in calls
            if isinstance(call.func, ast.Attribute)
            and not self._project.callees(call)
            and any(
                isinstance(a, ast.Name | ast.Attribute) and may_hold(module, a)
                for a in all_given(call)
            )
            and self._project.external(module, call.func) is None
            and not self._leaves_alone(module, call)
        )


def _receiver(call: ast.Call) -> tuple[ast.expr, ...]:
    return (call.func.value,) if isinstance(call.func, ast.Attribute) else ()
