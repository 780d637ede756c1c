"""Hide the lines of a notebook cell that are IPython and not Python, and bring them back."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

LEFTOVER = re.compile(r'#?"magic:(\d+)"')
_MAGIC = re.compile(
    r"(?P<head>[ \t]*(?:[\w.,\[\] \t]+=[ \t]*)?)(?P<body>(?:%%?|!!?|\?)[ \t]*\S.*)$"
)
_HELP = re.compile(r"(?P<head>[ \t]*)(?P<body>[%\w.*]+\?\??)[ \t]*$")
_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_OVER_PYTHON = frozenset(("time", "timeit", "capture", "prun", "snakeviz", "memit"))
_IMPORTS_APEX = re.compile(r"^\s*(from|import)\s+apex\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Masked:
    """A cell as Python, line for line: each magic stands as a string, lines it goes on as comments."""

    text: str
    magics: tuple[str, ...] = ()

    def restore(self, text: str) -> str:
        """Return `text` with the magics in their place.

        Raises ValueError where a magic is there twice, or in part.
        """
        there = [int(number) for number in LEFTOVER.findall(text)]
        going_on = (at for at in range(1, len(self.magics)) if f'#"magic:{at}"' in self.text)
        cut = any((at in there) != (at - 1 in there) for at in going_on)
        if cut or len(there) != len(set(there)) or max(there, default=-1) >= len(self.magics):
            raise ValueError("an edit would repeat or cut a magic command")
        return LEFTOVER.sub(lambda match: self.magics[int(match[1])], text)


class NotPython(Exception):
    """A cell that cannot be read as Python; the message says why it should be."""


def mask(cell: str) -> Masked | None:
    """Return a cell with ``\\n`` newlines as text that parses; None where it is no Python.

    Raises `NotPython` for such a cell if it mentions Apex in a way that matters.
    """
    if _error(cell) is None:
        return Masked(cell)
    kind = _CELL_MAGIC.match(cell)
    if kind and kind[1] not in _OVER_PYTHON:
        if kind[1] == "writefile" and _IMPORTS_APEX.search(cell):
            raise NotPython("writes a script that imports Apex: run amp-migrate on the script")
        return None
    hidden: list[str] = []
    lines = cell.split("\n")
    while (error := _error("\n".join(lines))) is not None:
        at = min(error.lineno or 1, len(lines)) - 1
        if not _hide(lines, at, hidden) and not _hide_first(lines, hidden):
            if "apex" in cell:
                raise NotPython(f"does not parse: {error.msg} (line {at + 1} of the cell)")
            return None
    return Masked("\n".join(lines), tuple(hidden))


def _hide(lines: list[str], at: int, hidden: list[str]) -> bool:
    """Put a string in place of the magic at a line, and comments for the lines it goes on."""
    match = _MAGIC.match(lines[at]) or _HELP.match(lines[at])
    if match is None:
        return False
    lines[at] = f'{match["head"]}"magic:{len(hidden)}"'
    hidden.append(match["body"])
    while hidden[-1].endswith("\\") and at + 1 < len(lines):
        at += 1
        body = lines[at].lstrip()
        lines[at] = f'{lines[at][: -len(body) or None]}#"magic:{len(hidden)}"'
        hidden.append(body)
    return True


def _hide_first(lines: list[str], hidden: list[str]) -> bool:
    return any(_hide(lines, at, hidden) for at in range(len(lines)))


def _error(text: str) -> SyntaxError | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except SyntaxError as error:
            return error
        except (RecursionError, MemoryError, ValueError) as error:
            return SyntaxError(str(error))
    return None
