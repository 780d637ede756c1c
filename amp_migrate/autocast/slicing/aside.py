"""What stands between a forward pass and its loss without computing either: metrics, logging, the preparation of data."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from itertools import dropwhile

from amp_migrate.autocast.slicing.effects import Effects
from amp_migrate.autocast.slicing.places import Needed, touches, without
from amp_migrate.facts.paths import called_alone, calls_anything, walk
from amp_migrate.project import Function, Project
from amp_migrate.training.forwards.forwards import Forward, Forwards
from amp_migrate.training.region import Region

_TENSORS = frozenset({"torch", "builtins", "math", "functools", "itertools", "collections"})
Stays = Callable[[ast.stmt], bool]


class Aside:
    """Splits regions where statements need no casts. `stays` tells of a statement that another rule takes out."""

    def __init__(
        self, project: Project, forwards: Forwards, effects: Effects, stays: Stays
    ) -> None:
        self._project = project
        self._forwards = forwards
        self._effects = effects
        self._stays = stays

    def parts(self, region: Region, chosen: Iterable[ast.stmt] | None = None) -> list[Region]:
        """Return a region without the statements that neither compute the loss nor with what the network gives.

        `chosen` are those that the loss is made of; None: those that the losses in the region are.
        """
        statements = region.statements()
        kept = set(self._feeding(region) if chosen is None else chosen)
        computed = self._computed(region, kept)
        fed = {p for stmt in computed for p in self._effects.reads(region.function, stmt)}
        runs: list[list[ast.stmt]] = [[]]
        waiting: list[ast.stmt] = []
        for stmt in statements:
            if stmt not in computed and not self._goes_with(region.function, stmt, fed):
                waiting.append(stmt)
                continue
            if any(calls_anything(one) for one in waiting):
                runs.append([])
            else:
                runs[-1] += waiting
            waiting = []
            runs[-1].append(stmt)
        found = [
            list(dropwhile(self._stays, run)) for run in runs if any(s in computed for s in run)
        ]
        return [Region(region.module, region.function, run[0], run[-1]) for run in found]

    def _goes_with(self, function: Function, stmt: ast.stmt, fed: Needed) -> bool:
        """Tell whether a statement is another rule's, changes what networks are given, or carries it to the next turn."""
        if self._stays(stmt):
            return True
        changed = self._effects.writes(function, stmt)
        again = touches(changed, self._effects.reads(function, stmt))
        call = called_alone(stmt)
        if call is not None and isinstance(call.func, ast.Attribute):  # `label.fill_(0.0)`
            place = self._effects.places.of(function.module, call.func.value)
            changed, again = {place} if place is not None else set(), True
        return again and touches(changed, fed) and not self._is_elsewhere(function, stmt)

    def does_more(self, function: Function, body: list[ast.stmt]) -> bool:
        """Tell whether the body of a loop calls a library that is not torch, as an environment or a file."""
        return any(
            self._is_foreign(function, node)
            for stmt in body
            for node in walk(stmt)
            if isinstance(node, ast.Call)
        )

    def _is_elsewhere(self, function: Function, stmt: ast.stmt) -> bool:
        """Tell whether a statement only calls libraries that are not torch."""
        calls = [node for node in walk(stmt) if isinstance(node, ast.Call)]
        return bool(calls) and all(self._is_foreign(function, call) for call in calls)

    def _is_foreign(self, function: Function, call: ast.Call) -> bool:
        module = function.module
        external = self._project.external(module, call.func)
        names = [external] if external is not None else []
        if external is None and isinstance(call.func, ast.Attribute):
            names = list(self._project.values.made_by(module, call.func.value))
        return any(name.partition(".")[0] not in _TENSORS for name in names)

    def _feeding(self, region: Region) -> list[ast.stmt]:
        """Return the statements that losses and networks of a region are made of."""
        needed: Needed = set()
        found = []
        statements = region.statements()
        for stmt in reversed(statements):
            written = self._effects.writes(region.function, stmt)
            runs = self._forwards.strength(region.module, stmt) > Forward.UNKNOWN
            if runs or stmt is statements[-1] or touches(written, needed):
                found.append(stmt)
                left = without(needed, self._effects.places.renewed(region.module, stmt))
                needed.intersection_update(left)
                needed |= self._effects.reads(region.function, stmt)
        return found

    def _computed(self, region: Region, kept: set[ast.stmt]) -> set[ast.stmt]:
        """Return the statements of `kept` that run something, or compute with what was run in the region."""
        made: Needed = set()
        found = set()
        strength = {s: self._forwards.strength(region.module, s) for s in region.statements()}
        least = (
            Forward.CRITERION if max(strength.values()) >= Forward.CRITERION else Forward.UNKNOWN
        )
        for stmt in region.statements():
            runs = strength[stmt] >= least
            if stmt not in kept or (not runs and self._is_elsewhere(region.function, stmt)):
                continue
            reads = self._effects.reads(region.function, stmt)
            if runs or touches(made, reads) or touches(reads, made) or not calls_anything(stmt):
                found.add(stmt)
                made |= self._effects.writes(region.function, stmt) if runs or made else set()
        return found
