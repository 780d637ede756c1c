"""Step time, throughput and peak memory of both programs, as rows relative to the first."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.runs.batches import Fit, largest
from amp_migrate.equivalence.runs.records import Run
from amp_migrate.equivalence.runs.runner import Runner


@dataclass(frozen=True)
class TimingRow:
    """Median milliseconds per step and peak MiB, and both relative to the first row (1.0: the same).

    `throughput` are samples per second (None: no DataLoader), `batch` is the batch size where it is another than the
    program's own, `waiting` the share of a step that goes into waiting for data.
    """

    name: str
    milliseconds: float
    mebibytes: float
    time_ratio: float
    memory_ratio: float
    throughput: float | None = None
    throughput_ratio: float | None = None
    batch: int | None = None
    waiting: float = 0.0


def table(runs: dict[str, Run], batches: dict[str, int] | None = None) -> tuple[TimingRow, ...]:
    """Return one row per run that measured something; ratios are to the first row."""
    rows: list[TimingRow] = []
    for name, run in runs.items():
        timings = [process.timing for process in run.processes if process.timing is not None]
        if not timings:
            continue
        seconds = statistics.median(value for one in timings for value in one.seconds)
        samples = sum(statistics.median(one.samples) for one in timings if one.samples)
        total = sum(value for one in timings for value in one.seconds)
        waited = sum(value for one in timings for value in one.waited)
        memory = max(one.peak_bytes for one in timings) / 2**20
        throughput = samples / seconds if samples else None
        row = TimingRow(name, seconds * 1e3, memory, 1.0, 1.0, throughput, None)
        waiting = waited / total if total else 0.0
        rows.append(dataclasses.replace(row, batch=(batches or {}).get(name), waiting=waiting))
    return tuple(_relative(row, rows[0]) for row in rows)


def _relative(row: TimingRow, first: TimingRow) -> TimingRow:
    faster = None
    if row.throughput is not None and first.throughput is not None:
        faster = row.throughput / first.throughput
    return dataclasses.replace(
        row,
        time_ratio=row.milliseconds / first.milliseconds,
        memory_ratio=row.mebibytes / first.mebibytes,
        throughput_ratio=faster,
    )


def migrated(runner: Runner, before: str) -> tuple[TimingRow, ...]:
    """Measure a migration: FP32, before and native."""
    config = _config(runner)
    plain = dataclasses.replace(config, casts=False, plain_fp32=True)
    runs = {
        "FP32": runner.before("timing fp32", plain),
        before: runner.before("timing", config),
        "native": runner.after("timing", config),
    }
    return table({name: run for name, run in runs.items() if run is not None})


def enabled(runner: Runner) -> tuple[tuple[TimingRow, ...], list[str]]:
    """Measure a training that got AMP: FP32, TF32 and both types; with `batch_sizes` at the largest batches too.

    What could not be measured is said in words.
    """
    runs: dict[str, Run] = {}
    said: list[str] = []
    for name, side, config in _sides(runner):
        run = side("timing", config)
        if run is None or not any(process.timing for process in run.processes):
            said.append(f"{name}: no time was taken{_because(run)}")
        else:
            runs[name] = run
    batches: dict[str, int] = {}
    if runner.options.batch_sizes:
        for name, side, config in _sides(runner):
            if name not in runs:
                continue
            fit = largest_batch(side, config, runs[name])
            said.append(f"{name}: {fit.said}")
            if fit.run is not None and fit.batch is not None:
                at = f"{name}, batch {fit.batch}"
                runs[at], batches[at] = fit.run, fit.batch
    return table(runs, batches), said


def _because(run: Run | None) -> str:
    return f" ({run.failure})" if run is not None and run.failure else ""


Side = Callable[[str, CaptureConfig], Run | None]


def _sides(runner: Runner) -> Iterator[tuple[str, Side, CaptureConfig]]:
    """Yield name, program and settings of every row."""
    config = _config(runner)
    yield "FP32", runner.before, dataclasses.replace(config, tf32=False)
    yield "TF32", runner.before, dataclasses.replace(config, tf32=True)
    if runner.options.dtype == "float16":
        yield "AMP fp16", runner.after, config
    unscaled = dataclasses.replace(config, cast="bfloat16", plain_fp32=True)
    yield "AMP bf16", runner.after, unscaled


def _config(runner: Runner) -> CaptureConfig:
    return runner.config(light=True, inject=(), steps=runner.options.timing_steps)


def largest_batch(side: Side, config: CaptureConfig, measured: Run) -> Fit:
    """Look for the largest batch that one side trains with, and measure it there."""
    own, most = measured.notes.get("batch"), measured.notes.get("samples")
    if own is None:
        return Fit(
            None, None, "no DataLoader with a batch size is seen, so no larger batch was tried"
        )
    runs = {own: measured}

    def fits(batch: int) -> bool:
        run = side("timing, larger batch", dataclasses.replace(config, batch_times=batch / own))
        if run is not None and run.processes and any(p.timing for p in run.processes):
            runs[batch] = run
        return batch in runs

    found = largest(fits, own, most)
    if found == own:
        return Fit(None, own, f"no batch larger than {own} fits")
    return Fit(
        runs[found], found, f"the largest batch that fits is {found}, {found / own:.3g} times {own}"
    )
