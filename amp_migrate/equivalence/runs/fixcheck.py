"""Check a fix by what it promises: accumulated gradients are those of the large batch."""

from __future__ import annotations

from typing import Any

from amp_migrate.equivalence.runs.runner import Runner

TOLERANCE = 1e-4


def check_fix(runner: Runner) -> dict[str, Any]:
    """Run the migrated program once more, replaying its first window as one large batch.

    Returns "micro_batches" and "error" (relative, of all gradients together) with "agrees", or
    only a "reason" where the program cannot be replayed.
    """
    run = runner.fixed("fix", runner.config(casts=False, inject=(), steps=1, check_fix=True))
    found = next((process.fix for process in run.processes if process.fix is not None), None)
    if found is None:
        return {"reason": "nothing was accumulated in the first step"}
    if "error" not in found:
        return {"reason": found["reason"]}
    return {
        "micro_batches": found["micro_batches"],
        "error": found["error"],
        "agrees": found["error"] <= TOLERANCE,
    }
