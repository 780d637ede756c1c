"""Verify the headline trainings on a CUDA machine and write docs/gpu-results.md.

    python scripts/gpu_check.py

Each program of fixtures/headline runs under Apex (the installed one, else the reference) and in
native AMP, with casts off and on, and its step time and peak memory are measured beside fp32.
Needs torch with CUDA and nothing else; takes less than eight minutes, and the page is written
after every program. `--device cpu --tiny --output FILE` rehearses it on a machine without a GPU.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from amp_migrate.equivalence.check import check, in_workspace  # noqa: E402
from amp_migrate.equivalence.options import Options, available_device  # noqa: E402
from amp_migrate.equivalence.result import Result  # noqa: E402
from amp_migrate.equivalence.runs.timing import TimingRow, migrated  # noqa: E402

PROGRAMS = {
    "SimpleCNN, CIFAR-10 shape, batch 256": "simple_cnn",
    "ViT-Base, batch 32": "vit_base",
    "ResNet-50, batch 64": "resnet50",
    "Transformer 6 x 512, batch 32 x 2": "transformer",
}
LONGEST_RUN = 150.0
BUDGET = 8 * 60.0


def main() -> int:
    """Run the checks; 0 where every program is equivalent, 1 where one is not, 2 without CUDA.

    The verdicts do not depend on what runs beside them, the times do: those are taken one after the other, last.
    """
    arguments = _arguments()
    if arguments.device == "cuda" and available_device() != "cuda":
        print("no CUDA device answers; see --help for a rehearsal on the CPU", file=sys.stderr)
        return 2
    started = time.monotonic()
    results: dict[str, Result] = {}

    def told(title: str, what: str) -> None:
        seconds = time.monotonic() - started
        print(f"{seconds:4.0f} s  {title}: {what}", flush=True)
        found = {title: results[title] for title in PROGRAMS if title in results}
        arguments.output.write_text("\n".join(_page(found, seconds)) + "\n", encoding="utf-8")

    with ThreadPoolExecutor(len(PROGRAMS) if arguments.device == "cuda" else 1) as pool:
        asked = {
            pool.submit(check, _options(PROGRAMS[title], arguments)): title for title in PROGRAMS
        }
        for done in as_completed(asked):
            results[asked[done]] = done.result()
            told(asked[done], str(done.result().verdict))
    longest = 0.0
    for title in PROGRAMS if not arguments.verdicts_only else ():
        begun = time.monotonic()
        if begun - started + longest > BUDGET:
            print(f"no time left to measure {title}", file=sys.stderr)
            continue
        results[title] = replace(
            results[title], timing=_timing(_options(PROGRAMS[title], arguments))
        )
        longest = max(longest, time.monotonic() - begun)
        told(title, "measured")
    print(f"wrote {arguments.output}")
    equivalent = [result for result in results.values() if result.verdict.exit_code == 0]
    return 0 if len(equivalent) == len(PROGRAMS) else 1


def _timing(options: Options) -> tuple[TimingRow, ...]:
    return in_workspace(options, lambda runner: migrated(runner, "Apex"), lambda verdict: ())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Verify the headline trainings on a GPU.")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="sizes for the CPU")
    parser.add_argument("--verdicts-only", action="store_true", help="measure no time and memory")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "gpu-results.md")
    return parser.parse_args()


def _options(folder: str, arguments: argparse.Namespace) -> Options:
    project = ROOT / "fixtures" / "headline" / folder
    return Options(
        command=(sys.executable, "train.py", *(["--tiny"] if arguments.tiny else [])),
        project=project,
        before=project / "apex",
        after=project / "native",
        steps=16,
        growth=5,
        device=arguments.device,
        timing_steps=40,
        timeout=LONGEST_RUN,
    )


def _page(results: dict[str, Result], seconds: float) -> Iterator[str]:
    header = next(
        (
            result.logic.before.processes[0].header
            for result in results.values()
            if result.logic is not None and result.logic.before.processes
        ),
        {"device": "unknown", "torch": "unknown", "python": "unknown"},
    )
    before = next((r.before_label for r in results.values() if r.before_label), "unknown")
    title = "Equivalence, step time and memory on a GPU"
    took = f"the whole check took {seconds:.0f} s"
    yield from head(title, "`python scripts/gpu_check.py`.", header, took)
    yield f"- Before: {before}"
    yield ""
    yield from _verdicts(results)
    yield ""
    if any(result.timing for result in results.values()):
        yield from _timings(results, before)


def head(title: str, writer: str, header: Mapping[str, str], took: str) -> Iterator[str]:
    """Yield the head of a page: what wrote it, and where and when that ran."""
    yield f"# {title}"
    yield ""
    yield f"Written by {writer}"
    yield ""
    yield f"- Device: {header['device']}"
    yield f"- torch {header['torch']}, Python {header['python']}"
    yield f"- Date: {datetime.date.today().isoformat()}; {took}"


def _verdicts(results: dict[str, Result]) -> Iterator[str]:
    yield "## Verdicts"
    yield ""
    yield "| program | before, run twice | casts off | casts on | decided by |"
    yield "|---|---|---|---|---|"
    for title, result in results.items():
        repeat = result.repeat.exact if result.repeat is not None else None
        logic = result.logic.comparison.exact if result.logic is not None else None
        yield (
            f"| {title} | {_equal(repeat)} | {_equal(logic)} | {_casts_on(result)} "
            f"| {result.held_to or 'nothing'} |"
        )
    yield ""
    for title, result in results.items():
        if result.verdict.reason:
            yield f"- {title}: {result.verdict.reason}"


def _equal(exact: bool | None) -> str:
    return "not run" if exact is None else "equal in every bit" if exact else "differs"


def _casts_on(result: Result) -> str:
    if result.numeric is None:
        return f"not run ({result.verdict.word})"
    delta = result.verdict.delta
    return (
        result.verdict.word if delta is None else f"{result.verdict.word} (loss within {delta:.1e})"
    )


def _timings(results: dict[str, Result], before: str) -> Iterator[str]:
    yield "## Step time and peak memory"
    yield ""
    yield "Medians of settled steps in runs that record nothing else; ratios are to FP32, with torch's default"
    yield "settings (TF32 in convolutions, not in matrix products)."
    if before.startswith("reference"):
        yield "Apex is the reference implementation here, in Python: Apex's own fused kernels are not measured."
    yield ""
    yield "| program | | ms/step | vs FP32 | peak MiB | vs FP32 |"
    yield "|---|---|---:|---:|---:|---:|"
    for title, result in results.items():
        for row in result.timing:
            yield (
                f"| {title} | {row.name} | {row.milliseconds:.2f} | {row.time_ratio:.2f}x "
                f"| {row.mebibytes:.0f} | {row.memory_ratio:.2f}x |"
            )


if __name__ == "__main__":
    raise SystemExit(main())
