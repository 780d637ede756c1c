"""The report on the terminal."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from typing import TextIO

import click

from amp_migrate.equivalence.comparison.anchor import relative
from amp_migrate.equivalence.comparison.steps import Comparison
from amp_migrate.equivalence.report.crash import ending, explaining
from amp_migrate.equivalence.report.environment import environment
from amp_migrate.equivalence.report.facts import facts
from amp_migrate.equivalence.result import Level, Result
from amp_migrate.equivalence.runs.records import EVENTS, Step

_COLOURS = {
    "EXACT": "green",
    "EQUIVALENT": "green",
    "DIFFERENT": "red",
    "INCONCLUSIVE": "yellow",
    "CANNOT_RUN": "yellow",
}
_MANY = 12
_EVENTS = 12
_NAMES = 16
_HEADER = (
    f"{'step':>4}  {'before':<{_EVENTS}} {'after':<{_EVENTS}} {'loss':>13} {'after':>13} "
    f"{'Δ loss':>8} {'Δ grad':>8} {'Δ upd':>8} {'scale':>6} {'after':>6} skip weights"
)


def wants_colour(stream: TextIO) -> bool:
    """Return whether to colour `stream`: a terminal, and NO_COLOR is not set."""
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and not os.environ.get("NO_COLOR")


def render(result: Result, colour: bool = False) -> str:
    """Return the report as text."""
    lines = list(_lines(result))
    text = "\n".join(lines) + "\n"
    return text if colour else click.unstyle(text)


def _lines(result: Result) -> Iterator[str]:
    yield _headline(result)
    if result.verdict.reason and result.verdict.word not in ("INCONCLUSIVE", "CANNOT_RUN"):
        yield from _folded(result.verdict.reason, "  ")
    if result.verdict.word == "EXACT":
        yield f"  before and after agree in every bit over {result.coverage.steps} steps"
    first = result.first
    if first is not None:
        yield f"  first difference: step {first.step}, {first.quantity}"
        yield f"    before  {first.before}"
        yield f"    after   {first.after}"
    for name, value in ending(result):
        yield from _labelled(f"  {name}", value)
    if explaining(result):
        yield from _labelled("  explained by", explaining(result))
    level = result.deciding
    if level is not None and level.before.steps and level.after.steps:
        yield ""
        yield from _table(level)
    yield ""
    yield from _facts(result)


def _headline(result: Result) -> str:
    verdict = click.style(result.verdict.word, fg=_COLOURS[result.verdict.word], bold=True)
    rest = str(result.verdict).removeprefix(result.verdict.word)
    return f"{verdict}{rest}"


def _table(level: Level) -> Iterator[str]:
    casts = "on" if level.name == "numeric" else "off"
    yield click.style(f"casts {casts}", bold=True)
    yield click.style(_HEADER, dim=True)
    pairs = list(zip(level.before.steps, level.after.steps, strict=False))
    for number in _shown(len(pairs), level.comparison):
        if number is None:
            yield "   …"
        else:
            yield _row(*pairs[number], level.comparison)
    yield from _legend("".join(step.events for pair in pairs for step in pair))


def _legend(events: str) -> Iterator[str]:
    """Say what the letters and signs of the table mean; of the events only those that occur."""
    met = [f"{letter} {name}" for letter, name in EVENTS.items() if letter in events]
    text = (
        f"{', '.join(met)}. Δ: relative difference of loss, gradient norm (grad) and norm of the update (upd). "
        "skip: s for each optimizer that skipped, before/after. weights: = the same in every bit."
    )
    for line in textwrap.wrap(text, 112):
        yield click.style(line, dim=True)


def _shown(count: int, comparison: Comparison) -> list[int | None]:
    """Return the rows to print: all of a short run, else both ends and the first difference."""
    if count <= _MANY:
        return list(range(count))
    first = comparison.first.step - 1 if comparison.first is not None else 0
    wanted = {0, 1, 2, 3, count - 2, count - 1, *range(first - 1, first + 4)}
    rows: list[int | None] = []
    for number in sorted(n for n in wanted if 0 <= n < count):
        if rows and rows[-1] is not None and number > rows[-1] + 1:
            rows.append(None)
        rows.append(number)
    return rows


def _row(before: Step, after: Step, comparison: Comparison) -> str:
    found = {difference.quantity for difference in comparison.at(before.index)}
    same = "=" if "parameters" not in found else click.style("≠", fg="red")
    text = (
        f"{before.index:>4}  {_short(before.events):<{_EVENTS}} {_short(after.events):<{_EVENTS}} "
        f"{before.loss:>13.9g} {after.loss:>13.9g} "
        f"{_relative(before.loss, after.loss):>8} {_relative(before.grad_norm, after.grad_norm):>8} "
        f"{_relative(before.update_norm, after.update_norm):>8} "
        f"{before.scale:>6g} {after.scale:>6g} "
        f"{_skips(before) + '/' + _skips(after):<4}"
    )
    return f"{click.style(text, fg='red') if found else text} {same}"


def _short(events: str) -> str:
    return events if len(events) <= _EVENTS else events[: _EVENTS - 1] + "…"


def _skips(step: Step) -> str:
    return "".join("s" if attempt.skipped else "-" for attempt in step.attempts)


def _relative(before: float | None, after: float | None) -> str:
    if before is None and after is None:
        return "-"
    if before == after:
        return "0"
    deviation = relative(after, before)
    return "n/a" if deviation is None else f"{deviation:.1e}"


def _facts(result: Result) -> Iterator[str]:
    for name, value in facts(result):
        yield from _labelled(name, value)
    yield from _timing(result)
    for name, value in environment(result).items():
        yield from _labelled(name, value)


def _timing(result: Result) -> Iterator[str]:
    if not result.timing:
        return
    yield ""
    width = max(10, *(len(row.name) + 2 for row in result.timing))
    head = f"{'':<{width}}{'ms/step':>10}{'vs FP32':>9}{'samples/s':>11}{'vs FP32':>9}{'peak MiB':>11}{'vs FP32':>9}"
    yield click.style(head, dim=True)
    for row in result.timing:
        yield (
            f"{row.name:<{width}}{row.milliseconds:>10.2f}{row.time_ratio:>8.2f}x"
            f"{_number(row.throughput, 11, '')}{_number(row.throughput_ratio, 8, 'x')}"
            f"{row.mebibytes:>11.1f}{row.memory_ratio:>8.2f}x"
        )
    yield ""


def _number(value: float | None, width: int, unit: str) -> str:
    if value is None:
        return f"{'-':>{width + len(unit)}}"
    return f"{value:>{width}.{2 if unit else 1}f}{unit}"


def _labelled(name: str, text: str) -> Iterator[str]:
    lines = textwrap.wrap(text, 96, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"{click.style(f'{name:<{_NAMES}}', dim=True)}{lines[0]}"
    for line in lines[1:]:
        yield f"{'':<{_NAMES}}{line}"


def _folded(text: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(text, 98, initial_indent=indent, subsequent_indent=indent)
