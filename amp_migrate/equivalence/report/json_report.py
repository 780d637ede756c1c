"""The report as JSON, schema 2 (see docs/verify-json.md)."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

from amp_migrate import __version__
from amp_migrate.equivalence.comparison.steps import Comparison
from amp_migrate.equivalence.report.crash import explaining
from amp_migrate.equivalence.report.environment import environment
from amp_migrate.equivalence.result import Level, Result
from amp_migrate.equivalence.runs.records import Process, Run, Step

SCHEMA = 2


def as_json(result: Result) -> dict[str, Any]:
    """Return the report as plain data; numbers that are not finite become strings."""
    first = result.first
    data = {
        "schema": SCHEMA,
        "amp_migrate": __version__,
        "verdict": {
            "word": result.verdict.word,
            "reason": result.verdict.reason,
            "delta": result.verdict.delta,
            "exit_code": result.verdict.exit_code,
            "explained_by": explaining(result),
        },
        "held_to": result.held_to,
        "before": result.before_label,
        "after": result.after_label,
        "crash": _row(result.crash),
        "first_difference": dataclasses.asdict(first) if first is not None else None,
        "coverage": dataclasses.asdict(result.coverage),
        "fixes": list(result.fixes),
        "fix_check": result.fix_check,
        "changed_files": list(result.changed),
        "notes": result.notes,
        "repeat": _comparison(result.repeat),
        "numeric_repeat": _comparison(result.numeric_repeat),
        "logic": _level(result.logic),
        "numeric": _level(result.numeric),
        "census": _rows(result.census),
        "anchor": _rows(result.errors),
        "envelope": _rows(result.bands),
        "equivalence": _row(result.equivalence),
        "timing": _rows(result.timing),
        "gain": result.gain,
        "options": dataclasses.asdict(result.options),
        "environment": environment(result),
    }
    return {key: _plain(value) for key, value in data.items()}


def _rows(rows: Any) -> list[Any] | None:
    return None if rows is None else [dataclasses.asdict(row) for row in rows]


def _row(row: Any) -> dict[str, Any] | None:
    return None if row is None else dataclasses.asdict(row)


def _comparison(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    return {
        "exact": comparison.exact,
        "compared": comparison.compared,
        "differences": [dataclasses.asdict(one) for one in comparison.differences],
    }


def _level(level: Level | None) -> dict[str, Any] | None:
    if level is None:
        return None
    return {
        "comparison": _comparison(level.comparison),
        "before": _run(level.before),
        "after": _run(level.after),
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "seconds": run.seconds,
        "returncode": run.returncode,
        "failure": run.failure,
        "notes": run.notes,
        "ranks": [_process(process) for process in run.processes],
    }


def _process(process: Process) -> dict[str, Any]:
    return {
        "rank": process.rank,
        "ended": process.how,
        "header": process.header,
        "steps": [_step(step) for step in process.steps],
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        **dataclasses.asdict(step),
        "loss": step.loss,
        "scale": step.scale,
        "grad_norm": step.grad_norm,
        "update_norm": step.update_norm,
        "skipped": step.skipped,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return str(value) if isinstance(value, Path) else value
