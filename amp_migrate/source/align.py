"""Which lines of a new text stand in place of which lines of the old one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Change(NamedTuple):
    """Lines ``old[start:end]`` became ``new[new_start:new_end]``; lines count from 0."""

    start: int
    end: int
    new_start: int
    new_end: int


def changes(old: Sequence[object], new: Sequence[object]) -> list[Change]:
    """Return what differs, in order; equal ends are not searched, so long files stay cheap."""
    from difflib import SequenceMatcher

    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    most -= head
    tail = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    inner_old, inner_new = old[head : len(old) - tail], new[head : len(new) - tail]
    matcher = SequenceMatcher(None, inner_old, inner_new, autojunk=False)
    return [
        Change(head + start, head + end, head + new_start, head + new_end)
        for tag, start, end, new_start, new_end in matcher.get_opcodes()
        if tag != "equal"
    ]


def moved_line(line: int, differences: Sequence[Change]) -> int:
    """Return where the old `line` (from 0) stands now; for a line that is gone, what replaced it."""
    shift = 0
    for change in differences:
        if line < change.start:
            break
        if line < change.end:
            return min(change.new_start + line - change.start, max(change.new_end - 1, 0))
        shift = change.new_end - change.end
    return line + shift
