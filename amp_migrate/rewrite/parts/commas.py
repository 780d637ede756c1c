"""Lists between commas: one more item, in the layout of the list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import libcst as cst

Item = TypeVar("Item", cst.Arg, cst.Param, cst.WithItem, cst.ImportAlias)
Space = cst.BaseParenthesizableWhitespace
SPACE = cst.SimpleWhitespace(" ")
NOTHING = cst.SimpleWhitespace("")


def breaks_line(space: Space) -> bool:
    """Tell whether a space holds a line break."""
    return isinstance(space, cst.ParenthesizedWhitespace)


def without_comments(space: Space) -> Space:
    """Return a space less its comments and blank lines."""
    if isinstance(space, cst.ParenthesizedWhitespace):
        return space.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=())
    return space


def after_comma(comma: cst.Comma | cst.MaybeSentinel) -> Space:
    """Return the space behind a comma."""
    return comma.whitespace_after if isinstance(comma, cst.Comma) else SPACE


def separator(spaces: Sequence[Space], opening: Space) -> Space:
    """Return what stands between two items of a list.

    `spaces` are those between its items, `opening` the one behind the opening parenthesis; one item
    a line makes a line break, everything else a space.
    """
    if spaces:
        one_per_line = all(breaks_line(space) for space in spaces)
        return without_comments(spaces[-1]) if one_per_line else SPACE
    return without_comments(opening) if breaks_line(opening) else SPACE


def insert(items: Sequence[Item], index: int, new: Item, between: Space) -> list[Item]:
    """Return `items` with `new` before position `index`, where an item follows it."""
    space: Space = between
    result: list[Item] = list(items)
    if index:
        last = result[index - 1]
        behind = after_comma(last.comma)
        if breaks_line(between) or not breaks_line(behind):
            space = without_comments(behind)
        else:
            result[index - 1] = last.with_changes(comma=cst.Comma(whitespace_after=SPACE))
            space = behind
    result.insert(index, new.with_changes(comma=cst.Comma(whitespace_after=space)))
    return result


def append(
    items: Sequence[Item], new: Item, between: Space, end: Space
) -> tuple[list[Item], Space]:
    """Return `items` with `new` as the very last one, and the space that closes the list.

    `end` is the space behind the last item; a trailing comma stays one.
    """
    if not items:
        return [new], end
    last = items[-1]
    trailing = isinstance(last.comma, cst.Comma)
    behind = after_comma(last.comma) if trailing else NOTHING
    inside = trailing and (breaks_line(behind) or not breaks_line(end))
    space, close = _comment_first(between, behind if inside else end)
    result: list[Item] = list(items)
    result[-1] = last.with_changes(comma=cst.Comma(whitespace_after=space))
    comma = cst.Comma(whitespace_after=close if inside else behind)
    result.append(new.with_changes(comma=comma) if trailing else new)
    return result, end if inside else close


def _comment_first(between: Space, close: Space) -> tuple[Space, Space]:
    """Return both spaces, the comment at the start of `close` in the line break before it."""
    if isinstance(between, cst.ParenthesizedWhitespace) and isinstance(
        close, cst.ParenthesizedWhitespace
    ):
        moved = between.with_changes(first_line=close.first_line)
        return moved, close.with_changes(first_line=cst.TrailingWhitespace())
    return between, close
