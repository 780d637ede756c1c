"""Step time, throughput and memory: the search for the largest batch, the table, and what is said about it."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.comparison.gains import gain
from amp_migrate.equivalence.options import Options
from amp_migrate.equivalence.report.png import write_png
from amp_migrate.equivalence.report.terminal import render
from amp_migrate.equivalence.result import Result
from amp_migrate.equivalence.runs.batches import largest
from amp_migrate.equivalence.runs.records import Process, Run, Timing
from amp_migrate.equivalence.runs.timing import TimingRow, enabled, table
from amp_migrate.equivalence.runs.workspace import prepare
from equivalence.forked import ForkedRunner, record

TRAINING = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(10, 12), torch.nn.ReLU(), torch.nn.Linear(12, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = TensorDataset(torch.randn(1024, 10), torch.randint(0, 3, (1024,)))
for epoch in range(8):
    for inputs, labels in DataLoader(data, batch_size=16):
        if len(inputs) > LIMIT:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(inputs), labels)
        loss.backward()
        optimizer.step()
"""


def _counted(limit: int) -> tuple[Callable[[int], bool], list[int]]:
    asked: list[int] = []

    def fits(size: int) -> bool:
        asked.append(size)
        return size <= limit

    return fits, asked


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 4096), st.floats(1, 500), st.none() | st.integers(1, 10**6))
def test_largest_batch_is_found_within_an_eighth(
    first: int, times: float, most: int | None
) -> None:
    limit = int(first * times)
    fits, asked = _counted(limit)
    found = largest(fits, first, most)
    bound = limit if most is None else max(first, min(limit, most))
    assert first <= found <= bound
    assert bound - found <= max(1, found // 8)
    assert len(set(asked)) == len(asked) <= 2 * max(1, limit // first).bit_length() + 4


def test_batches_between_are_multiples_of_eight() -> None:
    fits, asked = _counted(700)
    assert largest(fits, 64) == 640
    assert asked == [128, 256, 512, 1024, 768, 640, 704]


def _run(milliseconds: float, waited: float = 0.0, samples: int = 64, mebibytes: int = 100) -> Run:
    seconds = (milliseconds / 1e3,) * 3
    timing = Timing(seconds, mebibytes * 2**20, (samples,) * 3, tuple(s * waited for s in seconds))
    return Run("timing", (Process(0, {}, (), None, timing, None, {}, "steps"),))


def test_table_gives_throughput_and_ratios_to_the_first_row() -> None:
    larger = _run(30, samples=256, mebibytes=160)
    rows = table(
        {"FP32": _run(20), "AMP fp16": _run(10, mebibytes=60), "wide": larger}, {"wide": 256}
    )
    assert [row.throughput for row in rows] == pytest.approx([3200, 6400, 256 / 0.03])
    assert [row.throughput_ratio for row in rows] == pytest.approx([1, 2, 8 / 3])
    assert [(row.time_ratio, row.memory_ratio) for row in rows] == [(1, 1), (0.5, 0.6), (1.5, 1.6)]
    assert [row.batch for row in rows] == [None, None, 256]


FEW = {"operators": 100, "multiplications": 10**9, "uneven": 0, "largest_uneven": []}
ODD = {**FEW, "uneven": 9 * 10**8, "largest_uneven": [64, 1000, 10]}
MANY = {**FEW, "operators": 2000}


@pytest.mark.parametrize(
    ("amp", "products", "said"),
    [
        (_run(10), FEW, "takes 0.50x the time and 1.00x the memory of FP32"),
        (_run(20, waited=0.8), FEW, "because 80% of a step goes into waiting for data"),
        (_run(20), MANY, "its 2000 operators take 10.0 µs each"),
        (_run(20), ODD, "90% of the multiplications have dimensions that are no multiples of 8"),
        (_run(20), FEW, "neither loading, small operators nor odd dimensions say why"),
        (_run(21, waited=0.5), ODD, "waiting for data; and 90%"),
    ],
)
def test_what_amp_brings_is_said_with_its_cause(
    amp: Run, products: dict[str, Any], said: str
) -> None:
    found = gain(table({"FP32": _run(20), "AMP fp16": amp}), products)
    assert said in found
    assert ("brings no time" in found) == ("0.50x" not in found)


def test_batches_are_enlarged_and_waiting_for_them_is_measured() -> None:
    text = TRAINING.replace("LIMIT", "64")
    plain = CaptureConfig("", steps=6, light=True)
    found = [
        record(text, dataclasses.replace(plain, batch_times=times)) for times in (1.0, 3.0, 8.0)
    ]
    timings = [run.processes[0].timing if run.processes else None for run in found]
    assert [set(timing.samples) if timing else timing for timing in timings] == [{16}, {48}, None]
    assert "out of memory" in found[2].failure
    first = timings[0]
    assert first is not None and all(
        0 < waited < took for waited, took in zip(first.waited, first.seconds, strict=True)
    )
    assert (found[0].notes["batch"], found[0].notes["samples"]) == (16, 1024)


def test_products_of_a_forward_pass_are_counted() -> None:
    done = record(TRAINING.replace("LIMIT", "64"), CaptureConfig("", steps=4, products=True))
    held = done.notes["products"]
    assert held["multiplications"] == 16 * 10 * 12 + 16 * 12 * 3 == held["uneven"]
    assert held["largest_uneven"] == [16, 10, 12]
    assert held["operators"] > 10


def test_every_side_is_measured_and_its_largest_batch(tmp_path: Path) -> None:
    """What a GPU is asked, asked of the CPU: four programs, each with a batch that is too large at some point."""
    project = tmp_path / "project"
    project.mkdir()
    text = TRAINING.replace("LIMIT", "(100 if 'scaler' in globals() else 50)")
    (project / "train.py").write_text(text)
    command = (sys.executable, "train.py")
    options = Options(command, project, enables=True, timing_steps=2, batch_sizes="auto")
    runner = ForkedRunner(options, prepare(options, tmp_path), tmp_path, lambda *told: None)
    rows, said = enabled(runner)
    assert [row.name for row in rows if row.batch is None] == [
        "FP32",
        "TF32",
        "AMP fp16",
        "AMP bf16",
    ]
    wide = [row.name for row in rows if row.batch is not None]
    assert wide == [f"{name}, batch 48" for name in ("FP32", "TF32")] + [
        f"AMP {dtype}, batch 96" for dtype in ("fp16", "bf16")
    ]
    assert "FP32: the largest batch that fits is 48, 3 times 16" in said


def test_table_is_drawn(tmp_path: Path) -> None:
    rows = table({"FP32": _run(20), "AMP fp16": _run(10)})
    options = Options(("python", "train.py"), tmp_path, enables=True)
    result = Result(options, timing=rows, gain=gain(rows, FEW))
    text = render(result)
    assert "samples/s" in text and "0.50x" in text and "6400.0" in text
    write_png(result, tmp_path / "report.png")
    assert (tmp_path / "report.png").stat().st_size > 10_000


def test_row_without_samples_has_no_throughput() -> None:
    bare = dataclasses.replace(_run(20).processes[0], timing=Timing((0.02,), 2**20))
    row: TimingRow = table({"FP32": Run("timing", (bare,))})[0]
    assert (row.throughput, row.throughput_ratio, row.waiting) == (None, None, 0.0)
