"""The curves of a report as a picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from amp_migrate.equivalence.comparison.anchor import Series
from amp_migrate.equivalence.report.charts import MEASURES
from amp_migrate.equivalence.report.series import Panel, panels, skipped_steps
from amp_migrate.equivalence.result import Result

INK, SOFT, GRID = "#1d2433", "#5d6880", "#e3e7ee"
BEFORE, AFTER = "#9fc0e8", "#c2410c"
VERDICTS = {"EXACT": "#15803d", "EQUIVALENT": "#15803d", "DIFFERENT": "#b91c1c"}
UNDECIDED = "#a16207"
SMALLEST = 1e-9


def write_png(result: Result, path: Path) -> None:
    """Draw curves before and after on top, their deviation and its limit below."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn = panels(result)
    columns = max(1, len(drawn))
    timed = bool(result.timing)
    columns = max(columns, len(MEASURES) if timed else 1)
    figure, axes = pyplot.subplots(
        2 + timed,
        columns,
        figsize=(4.1 * columns, 6.4 + 3.0 * timed),
        squeeze=False,
        height_ratios=(1.25, 1, 1)[: 2 + timed],
    )
    top = 0.85 if timed else 0.79
    figure.subplots_adjust(left=0.05, right=0.985, top=top, bottom=0.075, hspace=0.32, wspace=0.24)
    _title(figure, result)
    if timed:
        _times(axes[2], result)
    for column, panel in enumerate(drawn):
        _curves(axes[0][column], panel, skipped_steps(result))
        _deviation(axes[1][column], panel, skipped_steps(result))
    for row in axes[:2]:
        for axis in row[len(drawn) :]:
            axis.axis("off")
    figure.savefig(path, dpi=130, facecolor="white")
    pyplot.close(figure)


def _title(figure: Any, result: Result) -> None:
    colour = VERDICTS.get(result.verdict.word, UNDECIDED)
    figure.text(0.05, 0.93, str(result.verdict)[:70], color=colour, size=21, weight="bold")
    reason = result.verdict.reason if result.verdict.word == "DIFFERENT" else ""
    labels = f"before: {result.before_label}    after: {result.after_label}"
    figure.text(0.05, 0.89, (reason or labels)[:170], color=INK, size=10.5)
    figure.text(0.05, 0.86, str(result.coverage)[:190], color=SOFT, size=9)


def _times(axes: Any, result: Result) -> None:
    """Draw a bar for every row of the timing table, with its ratio to the first."""
    for axis, measure in zip(axes, MEASURES, strict=False):
        rows = [row for row in result.timing if measure.value(row) is not None]
        drawn = axis.barh([row.name for row in rows], [measure.value(row) for row in rows])
        axis.bar_label(drawn, [f"{measure.ratio(row) or 1.0:.2f}x" for row in rows], size=8.5)
        for bar in drawn:
            bar.set_color(BEFORE)
        axis.invert_yaxis()
        axis.margins(x=0.18)
        axis.set_title(f"{measure.name}, {measure.unit}", color=INK, size=11, loc="left")
        _dress(axis, [])
    for axis in axes[len(MEASURES) :]:
        axis.axis("off")


def _curves(axis: Any, panel: Panel, skipped: list[int]) -> None:
    steps = list(range(1, len(panel.before) + 1))
    axis.plot(steps, _drawable(panel.before), color=BEFORE, lw=5, label="before")
    axis.plot(steps, _drawable(panel.after), color=AFTER, lw=1.6, label="after")
    axis.set_title(panel.name, color=INK, size=11, loc="left")
    values = [v for v in (*panel.before, *panel.after) if v is not None and math.isfinite(v)]
    if values and min(values) > 0 and max(values) / min(values) > 100:
        axis.set_yscale("log")
    _dress(axis, skipped)
    if panel.name == "loss":
        axis.legend(frameon=False, fontsize=9, labelcolor=INK)


def _deviation(axis: Any, panel: Panel, skipped: list[int]) -> None:
    if panel.equal:
        axis.text(0.5, 0.5, "equal in every bit", ha="center", color="#15803d", size=12)
        axis.set_xticks([])
        axis.set_yticks([])
        for side in axis.spines.values():
            side.set_color(GRID)
        return
    steps = list(range(1, len(panel.deviation) + 1))
    floored = [None if v is None else max(v, SMALLEST) for v in panel.deviation]
    if panel.limit:
        limit = _drawable(panel.limit)
        axis.fill_between(steps, SMALLEST, limit, color=BEFORE, alpha=0.35, lw=0, label="allowed")
        axis.legend(frameon=False, fontsize=9, labelcolor=INK)
    axis.plot(steps, _drawable(floored), color=AFTER, lw=1.2, marker="o", ms=3)
    axis.set_yscale("log")
    top = max((v for v in floored if v is not None and math.isfinite(v)), default=1.0)
    axis.set_ylim(SMALLEST, 5 * max(top, 1e-3))
    axis.set_title(panel.what, color=SOFT, size=9.5, loc="left")
    _dress(axis, skipped)


def _dress(axis: Any, skipped: list[int]) -> None:
    for step in skipped:
        axis.axvline(step, color=SOFT, lw=0.9, ls=":")
    axis.grid(axis="y", color=GRID, lw=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(which="both", colors=SOFT, labelsize=8.5, length=0)
    for name, side in axis.spines.items():
        side.set_visible(name == "bottom")
        side.set_color(GRID)


def _drawable(curve: Series) -> list[float]:
    return [math.nan if v is None or not math.isfinite(v) else v for v in curve]
