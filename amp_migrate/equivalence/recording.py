"""Run before as every level needs it, for a machine without Apex."""

from __future__ import annotations

from typing import Any

from amp_migrate.equivalence.comparison.beside import EVERYWHERE
from amp_migrate.equivalence.comparison.numeric import calmly, settled_scale
from amp_migrate.equivalence.runs.records import Run
from amp_migrate.equivalence.runs.runner import LOGIC, NUMERIC, SETTLED, Runner


def record_before(runner: Runner) -> Run:
    """Leave what an export holds in ``runner.before_runs``; returns the casts-off run."""
    options = runner.options
    logic = _record(runner, LOGIC, casts=False, growth=options.growth)
    if not logic.steps:
        return logic
    _record(runner, f"{LOGIC} again", casts=False, growth=options.growth)
    numeric = _record(runner, NUMERIC, census=True)
    _record(runner, f"{NUMERIC} again")
    _record(runner, "anchor", casts=False, inject=_skipped(numeric))
    for kick in range(1, options.runs):
        _record(runner, f"envelope {kick}", kick=kick)
    if (scale := settled_scale(numeric)) is not None:
        _settled(runner, scale)
    if options.enables:
        _record(runner, EVERYWHERE, everywhere=options.dtype)
    return logic


def _settled(runner: Runner, scale: float) -> None:
    run = _record(runner, SETTLED, census=True, **calmly(scale))
    _record(runner, "anchor, settled", casts=False, inject=_skipped(run))
    _record(runner, f"{SETTLED} again", **calmly(scale))
    for kick in range(1, runner.options.runs):
        _record(runner, f"envelope {kick}, settled", kick=kick, **calmly(scale))


def _skipped(run: Run) -> tuple[int, ...]:
    return tuple(step.index for step in run.steps if step.skipped)


def _record(runner: Runner, purpose: str, **changes: Any) -> Run:
    run = runner.before(purpose, runner.config(**changes))
    return run if run is not None else Run(purpose)
