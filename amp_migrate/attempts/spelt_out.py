"""The last plan of some files, with Apex spelt out in them as far as what comes of it is migrated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from amp_migrate.attempts.attempts import Attempts
from amp_migrate.facts.tree import Tree
from amp_migrate.outcome import Beyond, Outcome, Read
from amp_migrate.plain.spell import Use, left_as_it_was
from amp_migrate.plan.model import Plan, Status
from amp_migrate.plan.planner import Planner
from amp_migrate.project.programs import number_of

if TYPE_CHECKING:
    from amp_migrate.check.judging.objections import Judgement
    from amp_migrate.plan.unit_summary import UnitSummary

_SPELT = frozenset({"AMP118", "AMP208"})  # the rules that tell of what was spelt out
_STAY = frozenset({"AMP106"})  # the rule of clips that stay where AMP208 may move them


def last_plan(
    first: Planner,
    parsed: dict[str, Tree],
    outcomes: dict[str, Outcome],
    read: Read,
    beyond: Beyond,
) -> tuple[Plan, list[UnitSummary], Judgement | None]:
    """Plan and rewrite files that `first` plans as they are; what is left stands in the new texts as it stood."""
    late = first.late()
    without = set(late)
    while True:
        trees = {**parsed, **first.spelt_out(without)}
        spelt = any(trees[path] is not tree for path, tree in parsed.items())
        planner = first.of(trees) if spelt else first

        stays = partial(_stays, first, late, trees, outcomes)
        plan, units, judgement = Attempts(planner, trees, outcomes, read, beyond, stays).last()
        if more := _stuck(first, late, plan):
            without -= more
            late -= more
        elif more := _left(trees, outcomes, plan):
            without |= more
        else:
            return plan, units, judgement


def _stays(
    first: Planner,
    late: set[Use],
    trees: Mapping[str, Tree],
    outcomes: Mapping[str, Outcome],
    plan: Plan,
) -> bool:
    """Tell whether a plan leaves nothing that was spelt out for it."""
    return not (_stuck(first, late, plan) or _left(trees, outcomes, plan))


def _stuck(first: Planner, late: set[Use], plan: Plan) -> set[Use]:
    """Return what is spelt out late in programs of which a plan leaves something."""
    if not late:
        return set()
    moves = late if first.settings.enabled("AMP208") else set()
    stuck = (
        f.path
        for f in plan.findings()
        if f.status is Status.LEFT or (f.code in _STAY and (f.path, *f.span[:2]) in moves)
    )
    return _in_programs(first, late, stuck)


def _in_programs(first: Planner, uses: set[Use], paths: Iterable[str]) -> set[Use]:
    """Return the uses in the programs that some files belong to."""
    numbers = {number_of(first.project, path) for path in paths}
    return {use for use in uses if number_of(first.project, use[0]) in numbers}


def _left(trees: Mapping[str, Tree], outcomes: Mapping[str, Outcome], plan: Plan) -> set[Use]:
    """Return what was spelt out and is not migrated by a plan."""
    changed = [path for path, outcome in outcomes.items() if outcome.after is not None]
    done = {
        (f.path, *f.span[:2])
        for f in plan.findings()
        if f.code in _SPELT or (f.code == "AMP101" and f.status is Status.MIGRATED)
    }
    return left_as_it_was(trees, changed, done)
