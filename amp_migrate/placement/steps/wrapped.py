"""Steps of what holds the optimizer that Apex was asked to scale for: Apex skipped the one inside alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import all_given, tail
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Module
from amp_migrate.training.bindings import values_of
from amp_migrate.training.steppers import makes_schedule
from amp_migrate.training.steps import Step


def wrapping(unit: Unit, steps: list[Step]) -> Iterator[Step]:
    """Yield the steps of what may be made of another optimizer, as a Lookahead is, that `amp.scale_loss` names."""
    values, results = unit.project.values, unit.losses.objects.results
    named = frozenset().union(
        *(values.groups(b.module, o) for b in unit.backwards for o in b.optimizers)
    )
    spelt = {ast.unparse(o) for b in unit.backwards for o in b.optimizers}
    for step in (s for s in steps if ast.unparse(s.optimizer) not in spelt):
        stepped = values.groups(step.module, step.optimizer)
        makers = results.of(stepped - named) if named else []
        for module, call in (*makers, *_assigned(step)):
            kind = (unit.project.external(module, call.func) or tail(call)).rpartition(".")[2]
            inner = any(values.groups(module, given) & named for given in all_given(call))
            if inner and kind[:1].isupper() and not makes_schedule(kind):
                yield step
                break


def _assigned(step: Step) -> Iterator[tuple[Module, ast.Call]]:
    """Yield the calls that a variable which is stepped is bound to in its function, in arms of a choice too."""
    if isinstance(step.optimizer, ast.Name):
        for value in values_of(step.module, step.optimizer):
            arms = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            yield from ((step.module, arm) for arm in arms if isinstance(arm, ast.Call))
