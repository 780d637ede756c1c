"""Small line charts and bars as SVG text."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from amp_migrate.equivalence.comparison.anchor import Series
from amp_migrate.equivalence.runs.timing import TimingRow

WIDTH, HEIGHT = 300, 170
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 8, 22
SMALLEST = 1e-9


@dataclass(frozen=True)
class Axis:
    """A value axis: linear or logarithmic, from `low` to `high`."""

    low: float
    high: float
    log: bool = False

    def place(self, value: float) -> float:
        """Return the y coordinate of `value`, inside the plot."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log10(low), math.log10(high), math.log10(max(value, self.low))
        share = (at - low) / (high - low) if high > low else 0.5
        return HEIGHT - BOTTOM - min(1.0, max(0.0, share)) * (HEIGHT - TOP - BOTTOM)

    def ticks(self) -> list[float]:
        """Return about four values to label."""
        if self.log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            every = max(1, (last - first) // 4)
            return [10.0**power for power in range(first, last + 1, every)]
        return [self.low + (self.high - self.low) * part / 3 for part in range(4)]


def value_axis(*curves: Series) -> Axis:
    """Return an axis for curves: logarithmic where they span more than two decades."""
    values = [v for curve in curves for v in curve if v is not None and math.isfinite(v)]
    if not values:
        return Axis(0.0, 1.0)
    low, high = min(values), max(values)
    if low > 0 and high / low > 100:
        return Axis(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)), True)
    narrowest = abs(high) * 1e-3 or 1.0  # differences in the last digits must not fill the plot
    margin = max((high - low) * 0.08, narrowest)
    return Axis(low - margin, high + margin)


def deviation_axis(*curves: Series) -> Axis:
    """Return a logarithmic axis from 1e-9 to above the largest value."""
    values = [v for curve in curves for v in curve if v is not None and math.isfinite(v)]
    top = max([*values, 1e-2])
    return Axis(SMALLEST, 10 ** math.ceil(math.log10(top) + 0.05), True)


def across(index: int, count: int) -> float:
    """Return the x coordinate of step `index` (from 0) of `count`."""
    return LEFT + (WIDTH - LEFT - RIGHT) * (index / (count - 1) if count > 1 else 0.5)


def curves(before: Series, after: Series, skipped: list[int]) -> str:
    """Draw both curves, the first as a wide band so that an equal second one lies inside."""
    axis = value_axis(before, after)
    marks = "".join(_skip(step, len(before)) for step in skipped)
    drawn = _line(before, axis, "before") + _line(after, axis, "after")
    return _frame(axis, len(before), marks + drawn)


def deviations(deviation: Series, limit: Series, skipped: list[int]) -> str:
    """Draw the deviation on a logarithmic axis, with the allowed band under its limit."""
    axis = deviation_axis(deviation, limit)
    marks = "".join(_skip(step, len(deviation)) for step in skipped)
    band = _band(limit, axis) if limit else ""
    dots = "".join(
        f'<circle class="dot" cx="{across(i, len(deviation)):.1f}" '
        f'cy="{axis.place(v):.1f}" r="2.2"><title>step {i + 1}: {v:.3g}</title></circle>'
        for i, v in enumerate(deviation)
        if v is not None
    )
    return _frame(axis, len(deviation), marks + band + _line(deviation, axis, "deviation") + dots)


def _frame(axis: Axis, count: int, inside: str) -> str:
    lines = []
    for tick in axis.ticks():
        y = axis.place(tick)
        lines.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{LEFT - 5}" y="{y + 3:.1f}" text-anchor="end">'
            f"{_number(tick, axis)}</text>"
        )
    for step in sorted({1, (count + 1) // 2, count}):
        lines.append(
            f'<text class="tick" x="{across(step - 1, count):.1f}" y="{HEIGHT - 7}" '
            f'text-anchor="middle">{step}</text>'
        )
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(lines)}{inside}</svg>'


def _number(value: float, axis: Axis) -> str:
    if axis.log:
        return f"1e{round(math.log10(value))}"
    unit, letter = (1000.0, "k") if max(abs(axis.low), abs(axis.high)) >= 1000 else (1.0, "")
    between = (axis.high - axis.low) / 3 / unit
    apart = math.floor(math.log10(between))
    if between < 1e-6:
        largest = math.floor(math.log10(max(abs(axis.low), abs(axis.high))))
        return f"{value:.{max(3, largest - apart + 1)}e}"
    digits = max(0, 1 - apart)
    return f"{value / unit:.{digits}f}{letter}"


def _line(curve: Series, axis: Axis, name: str) -> str:
    """Draw one curve, broken where a value is missing."""
    parts: list[str] = []
    pen = "M"
    for index, value in enumerate(curve):
        if value is None or not math.isfinite(value):
            pen = "M"
            continue
        parts.append(f"{pen}{across(index, len(curve)):.1f} {axis.place(value):.1f}")
        pen = "L"
    return f'<path class="{name}" d="{" ".join(parts)}"/>'


def _band(limit: Series, axis: Axis) -> str:
    points = [
        f"{across(index, len(limit)):.1f} {axis.place(value):.1f}"
        for index, value in enumerate(limit)
        if value is not None
    ]
    if not points:
        return ""
    floor = axis.place(axis.low)
    first, last = points[0].split()[0], points[-1].split()[0]
    return (
        f'<path class="band" d="M{first} {floor:.1f} L{" L".join(points)} L{last} {floor:.1f}Z"/>'
    )


def _skip(step: int, count: int) -> str:
    x = across(step - 1, count)
    return (
        f'<line class="skip" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}">'
        f"<title>step {step} skipped: overflow</title></line>"
    )


@dataclass(frozen=True)
class Measure:
    """A column of the timing table: its unit, and how a row gives its value and its ratio to the first."""

    name: str
    unit: str
    value: Callable[[TimingRow], float | None]
    ratio: Callable[[TimingRow], float | None]


TIME = Measure("step time", "ms", lambda row: row.milliseconds, lambda row: row.time_ratio)
THROUGHPUT = Measure(
    "throughput", "samples/s", lambda row: row.throughput, lambda row: row.throughput_ratio
)
MEMORY = Measure("peak memory", "MiB", lambda row: row.mebibytes, lambda row: row.memory_ratio)
MEASURES = (TIME, THROUGHPUT, MEMORY)


def bars(rows: tuple[TimingRow, ...], measure: Measure) -> str:
    """Draw one bar per timing row, labelled with its value and its ratio to the first; empty where none has one."""
    held = [(row, value) for row in rows if (value := measure.value(row)) is not None]
    if not held:
        return ""
    largest = max(value for _, value in held)
    margin = max(58, 6 * max(len(row.name) for row, _ in held) + 10)
    drawn = []
    for number, (row, value) in enumerate(held):
        y, length = 10 + number * 34, 250 * value / largest
        drawn.append(
            f'<text class="name" x="0" y="{y + 15}">{escape(row.name)}</text>'
            f'<rect class="bar bar{min(number, 3)}" x="{margin}" y="{y}" width="{length:.1f}" height="22" rx="3"/>'
            f'<text class="value" x="{margin + 8 + length:.1f}" y="{y + 15}">'
            f"{value:.4g} {measure.unit}  ·  {measure.ratio(row) or 1.0:.2f}×</text>"
        )
    height = 14 + 34 * len(held)
    return (
        f'<svg class="bars" viewBox="0 0 {margin + 420} {height}" role="img">{"".join(drawn)}</svg>'
    )
