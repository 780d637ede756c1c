"""Native trainings with one fault each, and the same trainings without it, as data.

The files of `seeded/` hold one class of faults each. ``@@ name`` begins a program, ``>> path`` a file of it
(``train.py`` where there is none). A line that begins with ``-`` belongs to the wrong program alone, one with ``+``
to the right one; the sign is no part of the text. ``#! BREACH`` marks the line at which the fault must be found.
Every file begins with one line of imports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.check import faults
from amp_migrate.protocol.faults import Breach, Fault

FOLDER = Path(__file__).parent / "seeded"
_IMPORTS = (
    "import torch; from torch import nn; import torch.nn.functional as F; "
    "from torch.cuda.amp import GradScaler, autocast"
)
_MARK = re.compile(r"  #! (\w+)$")


@dataclass(frozen=True)
class Seeded:
    """A program with a fault of a class, `expected` at the lines that may be named for it."""

    group: str
    name: str
    wrong: dict[str, str]
    right: dict[str, str]
    expected: frozenset[tuple[Breach, str, int]]

    def found(self) -> bool:
        """Tell whether the fault is found where it is."""
        marks = {(f.breach, f.place.path, f.place.line) for f in _faults(self.wrong)}
        return bool(marks & self.expected)

    def complaints(self) -> list[str]:
        """Return what is said of the program without the fault."""
        return [fault.sentence() for fault in _faults(self.right)]


def _faults(files: dict[str, str]) -> list[Fault]:
    return faults(build({path: Tree(path, text) for path, text in files.items()}))


@cache
def seeded() -> tuple[Seeded, ...]:
    """Return every program, by class and name."""
    return tuple(
        _program(path.stem, part)
        for path in sorted(FOLDER.glob("*.txt"))
        for part in re.split(r"^@@ ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    )


def _program(group: str, part: str) -> Seeded:
    name, _, text = part.partition("\n")
    files: dict[str, list[str]] = {}
    path = "train.py"
    for line in text.splitlines():
        if line.startswith(">> "):
            path = line[3:]
        else:
            files.setdefault(path, [_IMPORTS]).append(line)
    wrong = {path: _side(lines, "-") for path, lines in files.items()}
    expected = frozenset(
        (Breach[mark[1]], path, number)
        for path, side in wrong.items()
        for number, line in enumerate(side, 1)
        if (mark := _MARK.search(line))
    )
    return Seeded(
        group,
        name,
        {path: _text(side) for path, side in wrong.items()},
        {path: _text(_side(lines, "+")) for path, lines in files.items()},
        expected,
    )


def _side(lines: list[str], sign: str) -> list[str]:
    return [line[line.startswith(sign) :] for line in lines if line[:1] not in {"-", "+"} - {sign}]


def _text(lines: list[str]) -> str:
    return "\n".join(_MARK.sub("", line) for line in lines) + "\n"
