"""Run before as every level needs it, for a machine without Apex."""

from __future__ import annotations

from typing import Any

from amp_migrate.equivalence.comparison.beside import EVERYWHERE
from amp_migrate.equivalence.comparison.numeric import settled_scale
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
    skipped = tuple(step.index for step in numeric.steps if step.skipped)
    _record(runner, "anchor", casts=False, inject=skipped)
    for kick in range(1, options.runs):
        _record(runner, f"envelope {kick}", kick=kick)
    if (scale := settled_scale(numeric)) is not None:
        _settled(runner, scale)
    if options.enables:
        _record(runner, EVERYWHERE, everywhere=options.dtype)
    return logic


def _settled(runner: Runner, scale: float) -> None:
    _record(runner, SETTLED, census=True, first_scale=scale)
    _record(runner, f"{SETTLED} again", first_scale=scale)
    for kick in range(1, runner.options.runs):
        _record(runner, f"envelope {kick}, settled", kick=kick, first_scale=scale)


def _record(runner: Runner, purpose: str, **changes: Any) -> Run:
    run = runner.before(purpose, runner.config(**changes))
    return run if run is not None else Run(purpose)
