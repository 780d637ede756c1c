"""Which torch the texts of a project name that no tool reads as requirements: what is written for people, and names of images."""

from __future__ import annotations

import re
from collections.abc import Iterator

from amp_migrate.dependencies.files import is_one
from amp_migrate.source.file import Source

TEXTS = ("readme*", "install.md", "install.rst", "installation.md", "installation.rst")
MAKERS = ("*conda*.py", "*environment*.py", "*requirements*.py")
"""Scripts that write requirements."""

_SAID = re.compile(
    r"(?<![\w.\-/])(?:py)?torch\b`?\*{0,2}[ \t]*[(\[:]?[ \t]*(?P<sign>>=|==?|~=|≥|>)?[ \t]*v?(?P<release>\d+\.\d+(?:\.\d+)*)(?P<more>[ \t]*\+(?!\w))?",
    re.I,
)
_BETWEEN = re.compile(r"[\s(\[:`*]+")
_CONTAINER = re.compile(r"^\s*FROM\s+\S*nvidia/pytorch:(?P<release>\d\d\.\d\d)\b", re.I)
_CONTAINERS = {(1, 6): (20, 6), (1, 7): (20, 8), (2, 3): (24, 3), (2, 4): (24, 5)}
"""The first container of NVIDIA with each torch: they are called by year and month."""


def named(source: Source) -> Iterator[tuple[int, int, int, str, tuple[int, ...], bool]]:
    """Yield where a text names a torch: line from 1, columns, what it says, the version, and whether later ones are meant, too."""
    if not is_one(source.path, TEXTS):
        return
    for number, line in enumerate(source.text.split("\n"), 1):
        for match in _SAID.finditer(line):
            release = tuple(map(int, match["release"].split(".")))
            later = match["sign"] in (">=", "≥", ">", "~=") or match["more"] is not None
            yield number, *match.span(), " ".join(_BETWEEN.split(match[0])), release, later


def container_below(line: str, since: tuple[int, ...]) -> re.Match[str] | None:
    """Return the container of NVIDIA that a line builds on, where its torch is below a version."""
    match = _CONTAINER.match(line)
    first = _CONTAINERS.get((since[0], since[1]))
    if match is None or first is None:
        return None
    year, month = map(int, match["release"].split("."))
    return match if (year, month) < first else None
