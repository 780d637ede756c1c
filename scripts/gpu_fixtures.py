"""Run the fixtures on a GPU, before under the reference Apex and after natively, and compare what they print.

    python scripts/gpu_fixtures.py [--minutes N] [--workers N] [--output FILE]

Programs that name no device make all on the GPU. Those that cannot run there under Apex (they name the CPU, or
bring data from numpy or a file) are counted apart. Needs torch with CUDA and the package installed;
ends after the given minutes with what was run until then, drawn in an order that is always the same.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fixture_run import Mode, run  # noqa: E402
from fixture_support import cases, with_library  # noqa: E402
from gpu_check import head  # noqa: E402

OUTPUT = ROOT / "docs" / "gpu-fixtures.md"


def main() -> int:
    """Run them; 0 where all that ran print the same, 1 where one does not."""
    options = _options()
    ends = time.monotonic() + 60 * options.minutes
    runs = [(case.name, mode) for case in cases() for mode in case.modes]
    random.Random(0).shuffle(runs)
    found: dict[str, list[str]] = {"same": [], "differs": [], "raises": [], "unlike": []}
    left = iter(runs)
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        waiting = {
            pool.submit(_judged, options.device, *one) for one in _some(left, options.workers * 2)
        }
        while waiting:
            done = next(as_completed(waiting))
            waiting.remove(done)
            verdict, told = done.result()
            found[verdict].append(told)
            if verdict in ("differs", "unlike"):
                print(told, flush=True)
            if time.monotonic() < ends:
                waiting |= {pool.submit(_judged, options.device, *one) for one in _some(left, 1)}
    options.output.write_text("\n".join(_page(found, len(runs), options.device)) + "\n")
    print({verdict: len(told) for verdict, told in found.items()}, "of", len(runs))
    return 1 if found["differs"] or found["unlike"] else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the fixtures on a GPU.")
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    return parser.parse_args()


def _some(runs: Iterator[tuple[str, str]], number: int) -> list[tuple[str, str]]:
    return [one for _, one in zip(range(number), runs, strict=False)]


def _judged(device: str, name: str, mode: str) -> tuple[str, str]:
    """Return how a fixture fared in a mode, and what there is to tell of it."""
    case = with_library(next(case for case in cases() if case.name == name))
    plain = Mode.named(mode, case.overflow)
    how = Mode(plain.casts, plain.overflow, plain.cached, device)
    before = run(case.reference, case.run, case.run_args, how, apex=True)
    after = run(case.after, case.run, case.run_args, how, apex=False)
    raised = [_raised(printed) for printed in (before, after)]
    told = f"{name} ({mode})"
    if raised[0]:
        return "raises", f"{told}: {raised[0]}"
    if raised[1]:
        return "unlike", f"{told}: {raised[1]}"
    if before == after:
        return "same", told
    return "differs", f"{told}: {_first_difference(before, after)}"


def _raised(printed: str) -> str:
    return next((line for line in printed.splitlines() if line.startswith("raised ")), "")


def _first_difference(before: str, after: str) -> str:
    lines = zip(before.splitlines(), after.splitlines(), strict=False)
    for number, (one, other) in enumerate(lines, 1):
        if one != other:
            return f"line {number} of what is printed, {one[:60]} and {other[:60]}"
    return "one prints more"


def _page(found: dict[str, list[str]], number: int, device: str) -> Iterator[str]:
    import torch

    header = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "CPU",
        "torch": torch.__version__,
        "python": sys.version.split()[0],
    }
    writer = "`python scripts/gpu_fixtures.py`: every program before under the reference Apex and after natively."
    ran = sum(map(len, found.values()))
    yield from head("Fixtures on a GPU", writer, header, f"{ran} of {number} runs")
    yield ""
    yield "| what they print | runs |"
    yield "|---|---:|"
    yield f"| the same in every digit | {len(found['same'])} |"
    yield f"| not the same | {len(found['differs'])} |"
    yield f"| nothing, as the native side alone raises | {len(found['unlike'])} |"
    yield f"| nothing, as Apex does not run there either | {len(found['raises'])} |"
    for verdict, title in (
        ("differs", "Not the same"),
        ("unlike", "Native raises"),
        ("raises", "Not run"),
    ):
        if found[verdict]:
            yield ""
            yield f"## {title}"
            yield ""
            for told in sorted(found[verdict]):
                yield f"- {told}"


if __name__ == "__main__":
    raise SystemExit(main())
