"""Generate Apex trainings, migrate them, run both and compare; shrink and keep what fails.

Usage: python scripts/fuzz.py [--minutes N] [--seed S] [--programs N] [--workers N]
           [--summary FILE] [--save]
       python scripts/fuzz.py --refactor [--family NAME]... [--only REFACTORING]... [--minutes N] [--seed S]
           [--programs N] [--workers N] [--table FILE] [--rows FILE] [--shrink N] [--show] [--sample]
       python scripts/fuzz.py --enable [--refactor] [--dtype float16|bfloat16] [--minutes N] [--seed S] [--programs N]
Exit code 1 if a program failed. With --refactor, fixtures and generated programs are refactored at random,
and each must be migrated as it was before that. With --enable the programs are plain FP32 and get AMP,
with --refactor too they are refactored before that.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fuzz_refactor import Hunt, hunt, read, report, sample, show  # noqa: E402
from generated.choices.features import draw  # noqa: E402
from generated.judging.check import check  # noqa: E402
from generated.judging.hunt import Summary, judged, kind, same_failure  # noqa: E402
from generated.judging.plain import enabled, plain, refactored  # noqa: E402
from generated.judging.saved import save  # noqa: E402
from generated.judging.shrink import shrunk  # noqa: E402
from generated.refactor.refactoring import FAMILIES, catalogue  # noqa: E402
from generated.written.program import build  # noqa: E402

from amp_migrate.enable.enabling import Choices  # noqa: E402

_AT_ONCE = 8


def main() -> int:
    """Hunt, print the summary, shrink one failure of each kind."""
    options = _options()
    if options.enable:
        return _enable(options)
    if options.refactor:
        return _refactor(options)
    summary = Summary()
    start = time.monotonic()
    seeds: Iterator[int] = itertools.count(options.seed)
    if options.programs:
        seeds = iter(range(options.seed, options.seed + options.programs))
    minutes = 1.0 if options.minutes is None and not options.programs else options.minutes
    if minutes is not None:
        seeds = _until(seeds, start + 60 * minutes)
    for seed, outcome, why in judged(seeds, options.workers):
        summary.add(seed, outcome, why)
        if outcome == "failed":
            print(f"\nseed {seed} failed: {why}", file=sys.stderr)
        _progress(summary, time.monotonic() - start)
    print("\n".join(summary.lines()))
    if options.summary:
        seconds = time.monotonic() - start
        facts = {"first_seed": options.seed, "seconds": round(seconds), **summary.data()}
        options.summary.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    _shrink(summary, options.save)
    return 1 if summary.failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, help="stop after so long; 1 without --programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=0, help="stop after so many, 0: no limit")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--summary", type=Path, help="write the summary to this file, as JSON")
    parser.add_argument("--save", action="store_true", help="keep shrunk failures as test cases")
    parser.add_argument("--enable", action="store_true", help="add AMP to FP32 programs")
    parser.add_argument("--dtype", choices=("float16", "bfloat16"), default="float16")
    refactor = parser.add_argument_group("refactored trainings")
    refactor.add_argument("--refactor", action="store_true", help="refactor known trainings")
    refactor.add_argument("--family", action="append", default=[], choices=FAMILIES)
    refactor.add_argument(
        "--only", action="append", default=[], choices=sorted(catalogue()), metavar="REFACTORING"
    )
    refactor.add_argument("--table", type=Path, help="write the tables to this file, as Markdown")
    refactor.add_argument(
        "--rows", type=Path, help="add a JSON line for every variant to this file"
    )
    refactor.add_argument("--read", type=Path, help="count the rows of this file, draw nothing")
    refactor.add_argument("--shrink", type=int, default=0, help="shrink so many kinds of failure")
    refactor.add_argument("--show", action="store_true", help="print the variant of the seed alone")
    refactor.add_argument("--sample", action="store_true", help="keep the variants as the sample")
    return parser.parse_args()


def _enable(options: argparse.Namespace) -> int:
    """Add AMP to FP32 programs, a few at a time, and compare what both train."""
    minutes = options.minutes or (None if options.programs else 1.0)
    start = time.monotonic()
    outcomes: Counter[str] = Counter()
    last = options.seed + options.programs if options.programs else None
    for seed in itertools.count(options.seed, _AT_ONCE):
        if minutes is not None and time.monotonic() > start + 60 * minutes:
            break
        seeds = range(seed, min(seed + _AT_ONCE, last or seed + _AT_ONCE))
        if not seeds:
            break
        made = refactored if options.refactor else plain
        verdicts = enabled([made(number) for number in seeds], Choices(options.dtype))
        for number, verdict in zip(seeds, verdicts, strict=True):
            outcomes[verdict.outcome] += 1
            if verdict.outcome != "enabled":
                print(f"seed {number} {verdict.outcome}: {verdict.why}", flush=True)
    print(
        f"{sum(outcomes.values())} programs in {time.monotonic() - start:.0f} s: {dict(outcomes)}"
    )
    return 1 if outcomes["failed"] else 0


def _refactor(options: argparse.Namespace) -> int:
    minutes = options.minutes or (None if options.programs else 1.0)
    plan = Hunt(
        options.seed,
        options.programs,
        minutes,
        options.workers,
        tuple(options.family),
        tuple(options.only),
    )
    if options.show:
        print("\n".join(show(plan)))
        return 0
    table = read(options.read) if options.read else hunt(plan, options.rows)
    text = "\n".join(report(table, plan, options.shrink))
    print(text)
    if options.table:
        options.table.write_text(text + "\n", encoding="utf-8")
    if options.sample:
        print(f"kept {sample(table)} variants")
    return 1 if table.whole.wrong else 0


def _until(seeds: Iterator[int], end: float) -> Iterator[int]:
    return itertools.takewhile(lambda _: time.monotonic() < end, seeds)


def _progress(summary: Summary, seconds: float) -> None:
    total = sum(summary.outcomes.values())
    if sys.stderr.isatty() or total % 100 == 0:
        text = f"{total} programs, {60 * total / seconds:.0f} a minute, {dict(summary.outcomes)}"
        print(f"\r{text}", end="" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)


def _shrink(summary: Summary, keep: bool) -> None:
    seen = set()
    for seed, _ in summary.failures:
        program = build(draw(seed))
        verdict = check(program)
        if verdict.outcome != "failed" or kind(verdict) in seen:
            continue
        seen.add(kind(verdict))
        small = build(shrunk(program.features, same_failure(verdict)))
        verdict = check(small)
        print(f"\nseed {seed}, shrunk: {verdict.why}")
        for name, data in small.files.items():
            print(f"--- {name}\n{data.decode('latin-1')}")
        if keep:
            print(f"kept in {save(small, verdict.why, f'seed_{seed}')}")


if __name__ == "__main__":
    sys.exit(main())
