"""One file before and after, as rows of two sides: what changed, what a note speaks of, and a little around it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from amp_migrate.source.align import Change, changes

_AROUND = 3


class Row(NamedTuple):
    """Two lines that stand beside each other, counted from 0; None where a side has none there.

    `kind` is "same", "moved" (only the indentation differs) or "changed".
    """

    old: int | None
    new: int | None
    kind: str


class Stretch(NamedTuple):
    """Rows that are shown together; those of a stretch that is not `shown` are all the same."""

    rows: list[Row]
    shown: bool


def stretches(old: Sequence[str], new: Sequence[str], noted: Collection[int]) -> list[Stretch]:
    """Return all rows of a file in order; `noted` are the old lines that somebody speaks of."""
    rows = list(_rows(old, new))
    near: set[int] = set()
    for at, row in enumerate(rows):
        if row.kind != "same" or row.old in noted:
            near.update(range(at - _AROUND, at + _AROUND + 1))
    found: list[Stretch] = []
    for at, row in enumerate(rows):
        if not found or found[-1].shown != (at in near):
            found.append(Stretch([], at in near))
        found[-1].rows.append(row)
    return _joined(found)


def _joined(found: list[Stretch]) -> list[Stretch]:
    """Show also what is too short to fold away."""
    result: list[Stretch] = []
    for part in found:
        shown = part.shown or len(part.rows) < _AROUND
        if result and result[-1].shown and shown:
            result[-1].rows.extend(part.rows)
        else:
            result.append(Stretch(list(part.rows), shown))
    return result


def _rows(old: Sequence[str], new: Sequence[str]) -> Iterator[Row]:
    at = shift = 0
    for change in changes(old, new):
        yield from (Row(line, line + shift, "same") for line in range(at, change.start))
        yield from _changed(old, new, change)
        at, shift = change.end, change.new_end - change.end
    yield from (Row(line, line + shift, "same") for line in range(at, len(old)))


def _changed(old: Sequence[str], new: Sequence[str], change: Change) -> Iterator[Row]:
    """Put lines that only moved in or out beside each other, and the others from the top."""
    before = [line.strip() for line in old[change.start : change.end]]
    after = [line.strip() for line in new[change.new_start : change.new_end]]
    first, second = change.start, change.new_start
    at = other = 0
    for inner in [
        *changes(before, after),
        Change(len(before), len(before), len(after), len(after)),
    ]:
        for _ in range(inner.start - at):
            yield Row(first + at, second + other, "moved")
            at, other = at + 1, other + 1
        left = list(range(first + inner.start, first + inner.end))
        right = list(range(second + inner.new_start, second + inner.new_end))
        yield from _beside(old, new, left, right)
        at, other = inner.end, inner.new_end


def _beside(
    old: Sequence[str], new: Sequence[str], left: list[int], right: list[int]
) -> Iterator[Row]:
    """Put the shorter side where most of its lines have something in common with those beside them."""
    spare = len(left) - len(right)
    shift = max(range(abs(spare) + 1), key=lambda by: _common(old, new, left, right, by))
    holes: list[int | None] = [None] * abs(spare)
    one: list[int | None] = list(left)
    two: list[int | None] = list(right)
    if spare > 0:
        two = [*holes[:shift], *two, *holes[shift:]]
    else:
        one = [*holes[:shift], *one, *holes[shift:]]
    yield from (Row(a, b, "changed") for a, b in zip(one, two, strict=True))


def _common(
    old: Sequence[str], new: Sequence[str], left: list[int], right: list[int], shift: int
) -> int:
    """Return how many lines have something in common where the shorter side begins `shift` lines later."""
    longer = len(left) > len(right)
    pairs = (
        zip(left[shift:], right, strict=False) if longer else zip(left, right[shift:], strict=False)
    )
    return sum(bool(old[a].strip()) and differing(old[a], new[b]) is not None for a, b in pairs)


def differing(one: str, other: str) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the columns in which two lines differ, None where they have too little in common to say."""
    indents = len(one) - len(one.lstrip()), len(other) - len(other.lstrip())
    a, b = one[indents[0] :], other[indents[1] :]
    most = min(len(a), len(b))
    head = next((n for n in range(most) if a[n] != b[n]), most)
    head = _whole_word(a, b, head)
    tail = next((n for n in range(most - head) if a[-1 - n] != b[-1 - n]), most - head)
    tail = _whole_word(a[::-1], b[::-1], tail)
    if 2 * (head + tail) < max(len(a), len(b)):
        return None
    ends = len(one) - tail, len(other) - tail
    return (indents[0] + head, ends[0]), (indents[1] + head, ends[1])


def _whole_word(one: str, other: str, length: int) -> int:
    """Return the length of a common beginning that ends between words."""
    while length and _inside_word(one, length) | _inside_word(other, length):
        length -= 1
    return length


def _inside_word(text: str, at: int) -> bool:
    return at < len(text) and all(c.isalnum() or c == "_" for c in text[at - 1 : at + 1])
