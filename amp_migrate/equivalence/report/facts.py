"""What a report says beside the verdict, the curves and the table of steps."""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.equivalence.result import Result


def facts(result: Result) -> Iterator[tuple[str, str]]:
    """Yield name and text: the sides, how they were compared, what was exercised, what to know."""
    if result.before_label:
        yield "before", result.before_label
        yield "after", result.after_label
    if result.held_to:
        yield "held to", result.held_to
    if result.repeat is not None:
        yield "before twice", "equal in every bit" if result.repeat.exact else "differs"
    if result.coverage.steps:
        yield "coverage", str(result.coverage)
    yield from _numbers(result)
    if result.gain:
        yield "gain", result.gain
    if result.fixes:
        yield "fixes", ", ".join(result.fixes) + _fix_check(result)
    for note in result.notes:
        yield "note", note


def _numbers(result: Result) -> Iterator[tuple[str, str]]:
    if result.census is not None:
        rows = [f"{row} [{row.kind}]" for row in result.census]
        yield "census", "; ".join(rows) or "same operators in the same dtypes"
    for errors in result.errors:
        worst = max((value for value in errors.after if value is not None), default=0.0)
        ours = max((value for value in errors.before if value is not None), default=0.0)
        yield "vs fp32", f"{errors.name}: before {ours:.1e}, after {worst:.1e}"
    if result.equivalence is not None:
        tested = result.equivalence
        yield (
            "equivalence",
            f"two one-sided tests: mean log loss differs by {tested.difference:.2g}, 90 % interval "
            f"[{tested.low:.2g}, {tested.high:.2g}], smallest provable margin "
            f"{tested.certifiable:.2g}",
        )


def _fix_check(result: Result) -> str:
    checked = result.fix_check
    if checked is None:
        return ""
    if "error" not in checked:
        return f"; not checked against the large batch: {checked['reason']}"
    return (
        f"; {checked['micro_batches']} micro-batches give the gradient of the large batch "
        f"(relative error {checked['error']:.1e})"
    )
