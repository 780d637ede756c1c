"""Gradients that `torch.autograd.grad` takes: Apex ran no backward pass with casts, and so must the new text."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.differing import CAST, differs, scales
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.project import Function
from amp_migrate.training.forwards.indifferent import Indifferent
from amp_migrate.training.gradients.taken import taken_in
from amp_migrate.training.steps import takes_any, takes_gradients


@dataclass(frozen=True, eq=False, slots=True)
class Gradients:
    """Compares both texts, each function by its name."""

    old: Side
    new: Side

    def recast(
        self, native: Casting, was: Iterable[Function], now: Iterable[Function]
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield what takes gradients with casts in the new text, though it computes nothing else that needs any.

        `was` and `now` are the functions of both texts that turn AMP on, and those which begin behind them.
        """
        project = self.new.project
        if not takes_any(project):
            return
        indifferent, own = Indifferent(project), self._cast_before(was)
        begun = native.spread(now, inside_networks=True)
        for function in begun:
            if key(function) in own or scales(self.new, function):
                continue
            for call in self.new.program.graph(function).calls:
                if not takes_gradients(project, function.module, call):
                    continue
                if native.at(function, call, begun[function]) is Casts.ON:
                    statement = function.module.tree.statement(call)
                    if taken_in(project, indifferent, function, statement) is not None:
                        yield differs(CAST, (key(function), ast.unparse(call)), call)

    def _cast_before(self, entries: Iterable[Function]) -> Collection[Key]:
        """Return the functions that took gradients where native code of the old text may have cast."""
        native, project = Casting(self.old.program, Facts()), self.old.project
        begun = native.spread(entries, inside_networks=True)
        return {
            key(function)
            for function in begun
            for call in function.all_calls
            if takes_gradients(project, function.module, call)
            and native.at(function, call, begun[function]) is not Casts.OFF
        }
