"""The report as one HTML file without scripts or outside references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from amp_migrate.equivalence.comparison.anchor import relative
from amp_migrate.equivalence.comparison.steps import Comparison
from amp_migrate.equivalence.report import charts
from amp_migrate.equivalence.report.crash import ending, explaining
from amp_migrate.equivalence.report.environment import environment
from amp_migrate.equivalence.report.facts import facts
from amp_migrate.equivalence.report.page import STYLE
from amp_migrate.equivalence.report.series import Panel, panels, skipped_steps
from amp_migrate.equivalence.result import Level, Result
from amp_migrate.equivalence.runs.records import EVENTS, Step

_GOOD = ("EXACT", "EQUIVALENT")


def render_html(result: Result) -> str:
    """Return the page."""
    body = "".join(
        (
            _header(result),
            _ending(result),
            _curves(result),
            _first(result),
            _census(result),
            _timing(result),
            _steps(result),
            _facts(result),
        )
    )
    title = f"verify: {escape(str(result.verdict))}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body><main>{body}</main>"
        "</body></html>\n"
    )


def _header(result: Result) -> str:
    kind = "good" if result.verdict.word in _GOOD else "open"
    if result.verdict.word == "DIFFERENT":
        kind = "bad"
    delta = result.verdict.delta
    shown = f" <small>δ = {delta:.2g}</small>" if delta is not None else ""
    reason = result.verdict.reason or _meaning(result)
    sides = ""
    if result.before_label:
        sides = (
            f'<p class="sides"><span class="key before"></span>before: '
            f'{escape(result.before_label)}<span class="key after"></span>after: '
            f"{escape(result.after_label)}</p>"
        )
    return (
        f'<header class="{kind}"><p class="tool">amp-migrate verify</p>'
        f"<h1>{escape(result.verdict.word)}{shown}</h1>"
        f'<p class="reason">{escape(reason)}</p>{sides}</header>'
    )


def _meaning(result: Result) -> str:
    steps = result.coverage.steps
    if result.verdict.word == "EXACT":
        return f"The programs before and after agree in every bit over {steps} steps."
    return f"The programs before and after agree within what fp16 allows, over {steps} steps."


def _ending(result: Result) -> str:
    rows = [*ending(result)]
    if explaining(result):
        rows.append(("explained by", explaining(result)))
    if not rows:
        return ""
    texts = "".join(f"<dt>{escape(n)}</dt><dd><code>{escape(v)}</code></dd>" for n, v in rows)
    return f"<section><h2>What happened</h2><dl>{texts}</dl></section>"


def _curves(result: Result) -> str:
    drawn = panels(result)
    if not drawn or result.deciding is None:
        return ""
    skipped = skipped_steps(result)
    casts = "fp16 casts on" if result.deciding.name == "numeric" else "casts off"
    tops = "".join(
        f"<figure><figcaption>{panel.name}</figcaption>"
        f"{charts.curves(panel.before, panel.after, skipped)}</figure>"
        for panel in drawn
    )
    lows = "".join(_deviation(panel, skipped) for panel in drawn)
    return (
        f"<section><h2>Step by step <small>{casts}; dotted: skipped on overflow</small></h2>"
        f'<div class="grid4">{tops}{lows}</div></section>'
    )


def _deviation(panel: Panel, skipped: list[int]) -> str:
    if panel.equal:
        return '<figure class="same"><p>=</p><figcaption>equal in every bit</figcaption></figure>'
    drawn = charts.deviations(panel.deviation, panel.limit, skipped)
    return f"<figure><figcaption>{panel.what}</figcaption>{drawn}</figure>"


def _first(result: Result) -> str:
    first = result.first
    if first is None:
        return ""
    return (
        f"<section><h2>First difference <small>step {first.step}</small></h2>"
        f'<table class="pair"><tr><th>{escape(first.quantity)}</th><th></th></tr>'
        f"<tr><td>before</td><td><code>{escape(first.before)}</code></td></tr>"
        f"<tr><td>after</td><td><code>{escape(first.after)}</code></td></tr></table></section>"
    )


def _census(result: Result) -> str:
    if result.census is None:
        return ""
    if not result.census:
        return (
            "<section><h2>Operators and dtypes</h2><p>The same operators ran in the same dtypes."
            "</p></section>"
        )
    rows = [
        (row.operator, row.phase, _counts(row.before), _counts(row.after), _kind(row.kind))
        for row in result.census
    ]
    head = ("operator", "phase", "before", "after", "")
    return f"<section><h2>Operators and dtypes</h2>{_table(head, rows)}</section>"


def _kind(kind: str) -> str:
    return "fault" if kind == "fault" else "known difference of the two cast lists"


def _counts(dtypes: dict[str, int]) -> str:
    return ", ".join(f"{number} × {dtype}" for dtype, number in sorted(dtypes.items())) or "none"


def _timing(result: Result) -> str:
    if not result.timing:
        return ""
    return (
        f"<section><h2>Step time, throughput and peak memory <small>{_where(result)}; "
        'ratios to FP32</small></h2><div class="grid3">'
        f"{charts.bars(result.timing, charts.TIME)}{charts.bars(result.timing, charts.THROUGHPUT)}"
        f"{charts.bars(result.timing, charts.MEMORY)}</div></section>"
    )


def _where(result: Result) -> str:
    if result.options.device == "cuda":
        return escape(environment(result).get("device", "CUDA"))
    return "on the CPU, which says nothing about a GPU"


def _steps(result: Result) -> str:
    level = result.deciding
    if level is None or not level.before.steps:
        return ""
    head = (
        *("step", "events before", "after", "loss before", "loss after", "Δ loss"),
        *("Δ gradient", "Δ update", "scale before", "after", "parameters"),
    )
    rows = list(_step_rows(level))
    wrong = result.verdict.word == "DIFFERENT"
    letters = ", ".join(f"{letter} {name}" for letter, name in EVENTS.items())
    differing = {one.step for one in level.comparison.differences} if wrong else set()
    return (
        f"<section><h2>Every step</h2><p class=legend>{escape(letters)}</p>"
        f"{_table(head, rows, differing)}</section>"
    )


def _step_rows(level: Level) -> Iterator[tuple[str, ...]]:
    for one, other in zip(level.before.steps, level.after.steps, strict=False):
        yield (
            *(str(one.index), one.events, other.events),
            *(f"{one.loss:.9g}", f"{other.loss:.9g}"),
            *(_relative(one.loss, other.loss), _relative(one.grad_norm, other.grad_norm)),
            _relative(one.update_norm, other.update_norm),
            *(f"{one.scale:g}", f"{other.scale:g}"),
            _same(one, level.comparison),
        )


def _same(step: Step, comparison: Comparison) -> str:
    names = {difference.quantity for difference in comparison.at(step.index)}
    return "≠" if "parameters" in names else "="


def _relative(before: float | None, after: float | None) -> str:
    if before == after:
        return "0" if before is not None else "–"
    deviation = relative(after, before)
    return "–" if deviation is None else f"{deviation:.1e}"


def _facts(result: Result) -> str:
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
        for name, value in [*facts(result), *environment(result).items()]
        if name != "census"  # it has a section of its own
    )
    return f"<section><h2>How it was checked</h2><dl>{rows}</dl></section>"


def _table(head: Iterable[str], rows: Iterable[tuple[str, ...]], marked: Iterable[int] = ()) -> str:
    flagged = {str(step) for step in marked}
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    lines = []
    for row in rows:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        lines.append(f'<tr class="{"differs" if row[0] in flagged else ""}">{cells}</tr>')
    return f'<div class="scroll"><table><tr>{titles}</tr>{"".join(lines)}</table></div>'
