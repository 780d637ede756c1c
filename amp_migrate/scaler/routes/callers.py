"""The calls through which a function can be given the scaler, where they can all be seen."""

from __future__ import annotations

import ast

from amp_migrate.availability.dead import is_run, is_uncalled, is_unused
from amp_migrate.plan.cannot import place_of, spoken
from amp_migrate.project import CallSite, Class, Function
from amp_migrate.scaler.reach.out_of_reach import Inits


class Callers:
    """Knows who calls the functions that need the scaler.

    `alone`: the programs of the project initialize for others, and whoever calls the `uncalled` functions has the
    scaler.
    """

    def __init__(self, made: Inits, needing: set[Function]) -> None:
        self._project, self._made = made.project, made
        self._needing = needing
        self.alone = False
        self.uncalled: list[Function] = []

    def of(self, function: Function, node: ast.AST) -> list[CallSite]:
        """Return the calls of a function. Raises `Cannot` where some may be out of sight."""
        if function.node is None:
            raise self._made.unreachable(function, node, "no amp.initialize runs before")
        self.refuse_escaping(function, node)
        calls = self._project.callers(function)
        if not calls and not self._is_dead(function):
            reason = "nothing in the files given calls it"
            raise self._made.unreachable(function, node, reason)
        if not calls and (self.alone or function.cls is None):
            self.uncalled.append(function)
        for call in calls:
            self._refuse_beside(function, node, call)
        return calls

    def _refuse_beside(self, function: Function, node: ast.AST, call: CallSite) -> None:
        """Raise `Cannot` where a call looks a function up by a name by which it may find others, which take no scaler."""
        kin = {function, *self._project.family(function)}
        others = [other for other in self._project.callees(call.call) if other not in kin]
        if isinstance(call.call.func, ast.Call) and others:
            there = place_of(call.function.module, call.call)
            also = f"it is looked up by name ({there}), as {spoken(others[0])} is, which takes none"
            raise self._made.unreachable(function, node, also, (there,))

    def refuse_escaping(self, function: Function, node: ast.AST) -> None:
        """Raise `Cannot` where code that is not seen may call a function."""
        for user, place, reason in self._project.escapes(function):
            there = place_of(user.module, place)
            outside = f"it is {reason} ({there}), from where it may be called unseen"
            raise self._made.unreachable(function, node, outside, (there,))

    def spares(self, cls: Class) -> bool:
        """Tell whether nothing makes an object of a class, in this unit or for others."""
        return (bool(self._made.sites) or self.alone) and is_unused(self._project, cls)

    def _is_dead(self, function: Function) -> bool:
        """Tell whether no program uses a function or its class, while programs train without it."""
        own = function.class_around
        if own is not None:
            return self.spares(own)
        others = [f for f in self._needing if f is not function]
        trained = any(f in self._made.sites or is_run(self._project, f) for f in others)
        return (self.alone or trained) and is_uncalled(self._project, function)
