"""Colour on a terminal, and only there."""

from __future__ import annotations

import os
from typing import IO, Any, NamedTuple

_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}


class Style(NamedTuple):
    """Paints text where `colour` is on."""

    colour: bool

    def __call__(self, text: str, *names: str) -> str:
        """Return `text` in the named styles."""
        if not self.colour or not text or not names:
            return text
        codes = ";".join(str(_CODES[name]) for name in names)
        return f"\033[{codes}m{text}\033[0m"

    @classmethod
    def of(cls, stream: IO[Any], choice: bool | None) -> Style:
        """Choose for a stream: the option of the user, NO_COLOR, FORCE_COLOR, then the terminal."""
        if choice is not None:
            return cls(choice)
        if os.environ.get("NO_COLOR"):
            return cls(False)
        return cls(bool(os.environ.get("FORCE_COLOR")) or stream.isatty())


def painted_patch(patch: bytes, style: Style) -> bytes:
    """Return a patch with its lines in colour."""
    if not style.colour:
        return patch
    return b"".join(_painted(line) for line in patch.splitlines(keepends=True))


def _painted(line: bytes) -> bytes:
    for start, code in (
        (b"--- ", b"1"),
        (b"+++ ", b"1"),
        (b"@@", b"36"),
        (b"-", b"31"),
        (b"+", b"32"),
    ):
        if line.startswith(start):
            body = line.rstrip(b"\r\n")
            return b"\033[" + code + b"m" + body + b"\033[0m" + line[len(body) :]
    return line
