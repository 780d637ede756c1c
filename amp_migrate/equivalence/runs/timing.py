"""Step time and peak memory of the program in fp32, under Apex and in native AMP."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from amp_migrate.equivalence.runs.records import Run


@dataclass(frozen=True)
class TimingRow:
    """Median milliseconds per step and peak MiB, and both relative to fp32 (1.0: the same)."""

    name: str
    milliseconds: float
    mebibytes: float
    time_ratio: float
    memory_ratio: float


def table(runs: dict[str, Run]) -> tuple[TimingRow, ...]:
    """Return one row per run that measured something; ratios are to the first row."""
    measured = []
    for name, run in runs.items():
        timings = [process.timing for process in run.processes if process.timing is not None]
        if timings:
            seconds = statistics.median(value for one in timings for value in one.seconds)
            measured.append((name, seconds * 1e3, max(one.peak_bytes for one in timings) / 2**20))
    if not measured:
        return ()
    _, first_time, first_memory = measured[0]
    return tuple(
        TimingRow(name, time, memory, time / first_time, memory / first_memory)
        for name, time, memory in measured
    )
