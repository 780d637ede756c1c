"""Whether two runs exercised what they have; a check that nothing happened to proves nothing."""

from __future__ import annotations

import math

from amp_migrate.equivalence.comparison.verdict import Verdict, inconclusive
from amp_migrate.equivalence.result import Result
from amp_migrate.equivalence.runs.records import Run

OUTPUT = "verify --show-output"
LEFT = "--check"


def incomplete(result: Result, before: Run, after: Run) -> Verdict | None:
    """Return why two equal runs prove nothing, None where they do; what is merely good to know becomes a note."""
    coverage = result.coverage
    idle = [name for name in result.changed if name not in after.notes["files"]]
    if idle and len(idle) == len(result.changed):
        return inconclusive(
            f"the command runs none of the migrated files ({', '.join(idle[:3])}); is the "
            "project installed elsewhere?",
            LEFT,
        )
    # What only led to Apex is not imported any more.
    idle = [name for name in idle if name not in before.notes.get("files", ())]
    if idle:
        result.notes.append(f"migrated but not run by this command: {', '.join(idle)}")
    if after.notes.get("apex_amp", {}).get("enabled"):
        return inconclusive("the migrated program still runs on apex.amp", LEFT)
    if not any(math.isfinite(step.loss) for step in before.steps):
        return inconclusive("the loss is never finite", OUTPUT)
    ended = f"the program ends after {coverage.steps} of {coverage.asked} steps"
    if before.failure and coverage.steps < coverage.asked:
        return inconclusive(f"{ended}: {before.failure}", OUTPUT)
    if coverage.steps < coverage.asked:
        result.notes.append(ended)
    asked = result.options.inject
    dynamic = before.notes.get("grad_scaler") or before.notes.get("apex_amp", {}).get("dynamic")
    if asked and dynamic and not coverage.skipped:
        last = max(coverage.steps, 1)
        return inconclusive(
            f"{ended}, before any overflow was injected (steps {', '.join(map(str, asked))}); "
            "choose others with --inject-overflow",
            f"verify --inject-overflow {min(2, last)}",
        )
    return None


def without_updates(run: Run) -> list[str]:
    """Return what to note of a run with casts whose every step was skipped: its gradients and updates say nothing."""
    if not run.steps or not all(step.skipped for step in run.steps):
        return []
    lowest = min(step.scale for step in run.steps)
    return [
        f"with casts every step was skipped while the loss scale fell to {lowest:.0f}, so that they compare losses "
        "alone: a larger --steps compares updates too"
    ]
