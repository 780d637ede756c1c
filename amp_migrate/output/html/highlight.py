"""Python in colours, by Python's own tokenizer: each line becomes pieces of text with a kind."""

from __future__ import annotations

import builtins
import io
import keyword
import tokenize
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

_BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_")) | {"self", "cls"}
_CONSTANTS = frozenset({"True", "False", "None"})
_FORMATTED = ("FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")
_FORMATTED_STRING = frozenset(vars(tokenize)[name] for name in _FORMATTED if name in vars(tokenize))


class Piece(NamedTuple):
    """A part of one line, from column `start` to `end`; `kind` is a class of the style sheet."""

    start: int
    end: int
    kind: str


def pieces(text: str) -> list[list[Piece]]:
    """Return the coloured pieces of every line; a text that is no Python has none."""
    lines = text.split("\n")
    found: list[list[Piece]] = [[] for _ in lines]
    try:
        for kind, (row, start), (end_row, end) in _kinds(text):
            for number in range(row, end_row + 1):
                first = start if number == row else 0
                last = end if number == end_row else len(lines[number - 1])
                found[number - 1].append(Piece(first, last, kind))
    except (tokenize.TokenError, SyntaxError, IndexError):
        return bare(text)
    return found


def bare(text: str) -> list[list[Piece]]:
    """Return that nothing of a text that is not Python is coloured."""
    return [[] for _ in text.split("\n")]


def _kinds(text: str) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    named, decorates = "", False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = ""
        if token.type == tokenize.COMMENT:
            kind = "c"
        elif token.type == tokenize.STRING or token.type in _FORMATTED_STRING:
            kind = "s"
        elif token.type == tokenize.NUMBER:
            kind = "n"
        elif (
            token.type == tokenize.OP
            and token.string == "@"
            and not token.line[: token.start[1]].strip()
        ):
            kind, decorates = "d", True
        elif token.type == tokenize.NAME:
            kind = _name(token.string, named, decorates)
            named = token.string if token.string in ("def", "class") else ""
        if token.type == tokenize.NEWLINE or token.string == "(":
            decorates = False
        if kind:
            yield kind, token.start, token.end


def _name(name: str, named: str, decorates: bool) -> str:
    if named:
        return "f"
    if decorates:
        return "d"
    if name in _CONSTANTS:
        return "n"
    if keyword.iskeyword(name):
        return "k"
    return "b" if name in _BUILTINS else ""


def marked(
    line: str, found: Sequence[Piece], changed: tuple[int, int] | None = None, start: int = 0
) -> str:
    """Return a line from column `start` on as HTML, its pieces in colour and the columns of `changed` marked."""
    if changed is None or changed[0] >= changed[1]:
        return _coloured(line, found, start, len(line))
    first, last = max(changed[0], start), changed[1]
    return "".join(
        (
            _coloured(line, found, start, first),
            f"<mark>{_coloured(line, found, first, last)}</mark>",
            _coloured(line, found, last, len(line)),
        )
    )


def _coloured(line: str, found: Sequence[Piece], first: int, last: int) -> str:
    parts, at = [], first
    for piece in found:
        start, end = max(piece.start, at), min(piece.end, last)
        if start >= end:
            continue
        parts.append(escape(line[at:start], quote=False))
        parts.append(f'<i class="{piece.kind}">{escape(line[start:end], quote=False)}</i>')
        at = end
    parts.append(escape(line[at:last], quote=False))
    return "".join(parts)
