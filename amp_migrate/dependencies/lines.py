"""Which lines of a file ask for Apex, and which of them can go by themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from amp_migrate.dependencies.files import (
    BUILDS,
    ENVIRONMENTS,
    IMAGES,
    NOTEBOOKS,
    REQUIREMENTS,
    is_one,
)
from amp_migrate.source.file import Source
from amp_migrate.source.notebook import NotebookCodec


class Line(NamedTuple):
    """A line, from 1, that asks for Apex; `plain` is a requirement by the name of another package of PyPI."""

    number: int
    text: str
    removable: bool
    plain: bool


_URL = r"(?:git\+)?(?:https?|ssh|git)://\S*\bapex\b\S*"
_NAMED = r"(?:nvidia[-_])?apex(?![\w-])"
_REQUIREMENT = re.compile(rf"(?:-e\s+|--editable[ =])?(?:{_URL}|{_NAMED}(?P<rest>.*))", re.I)
_INSTALL = re.compile(r"\b(?:pip3?|conda|mamba)\s+install\b.*\bapex\b|\bNVIDIA/apex\b", re.I)
_ENTERS = re.compile(r"\s*WORKDIR\s+[\"']?(?P<folder>[^\s\"']+)", re.I)
_OWN = re.compile(r"(?:^|/)apex/?$", re.I)
_PLACES = re.compile(r"\s*(?:ADD|COPY)\s+(?:--\S+\s+)*(?:\S*/)?apex/?\s", re.I)
_BUILDS = re.compile(r"\bpip3?\s+install\b.*\s\.(?:\s|$)|\bsetup\.py\s+(?:install|develop)\b")
_ITEM = re.compile(r"-\s+(?:[\w.-]+::)?[\"']?(?P<named>.*?)[\"']?\s*(?:#.*)?$")
_QUOTED = re.compile(r"(?P<quote>[\"'])(?P<named>.*?)(?P=quote)\s*,?\s*(?:#.*)?$")
_KEYED = re.compile(rf"[\"']?{_NAMED}[\"']?\s*=", re.I)


def asking(source: Source) -> Iterator[Line]:
    """Yield the lines of a file that ask for Apex, in order."""
    lines = source.text.split("\n")
    if is_one(source.path, NOTEBOOKS):
        yield from _notebook(source)
    elif is_one(source.path, ("setup.py",)):
        yield from _setup(source.text)
    elif is_one(source.path, REQUIREMENTS):
        yield from _requirements(lines)
    elif is_one(source.path, ENVIRONMENTS):
        yield from _environment(lines)
    elif is_one(source.path, BUILDS):
        yield from _build(lines)
    elif is_one(source.path, IMAGES):
        yield from _image(lines)


def _image(lines: list[str]) -> Iterator[Line]:
    """Yield what installs Apex in an image: by its name, out of a folder of that name, or in it."""
    inside = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#"):
            continue
        if entered := _ENTERS.match(line):
            inside = _OWN.search(entered["folder"]) is not None
        if _INSTALL.search(line) or _PLACES.match(line) or (inside and _BUILDS.search(line)):
            yield Line(number, line, removable=False, plain=False)


def _asks(text: str) -> re.Match[str] | None:
    return _REQUIREMENT.match(text.strip())


def _is_plain(found: re.Match[str]) -> bool:
    """Tell whether a requirement is the name alone, which PyPI has given to another package."""
    rest = found["rest"]
    return rest is not None and "@" not in rest and found[0].lower().startswith("apex")


def _requirements(lines: list[str]) -> Iterator[Line]:
    for at, line in enumerate(lines):
        found = _asks(line)
        if found is not None:
            joined = line.rstrip().endswith("\\") or (
                at > 0 and lines[at - 1].rstrip().endswith("\\")
            )
            yield Line(at + 1, line, not joined, _is_plain(found))


def _environment(lines: list[str]) -> Iterator[Line]:
    for at, line in enumerate(lines):
        item = _ITEM.match(line.strip())
        found = _asks(item["named"]) if item else None
        if found is not None:
            yield Line(at + 1, line, _has_neighbour(lines, at), _is_plain(found))


def _has_neighbour(lines: list[str], at: int) -> bool:
    """Tell whether the list of an item has others, so that it is no empty one without it."""
    indent = len(lines[at]) - len(lines[at].lstrip())
    for step in (-1, 1):
        near = at + step
        while 0 <= near < len(lines) and lines[near].strip():
            own = len(lines[near]) - len(lines[near].lstrip())
            if own < indent or (own == indent and not lines[near].lstrip().startswith("-")):
                break
            if own == indent:
                return True
            near += step
    return False


def _build(lines: list[str]) -> Iterator[Line]:
    for at, line in enumerate(lines):
        text = line.strip()
        quoted = _QUOTED.match(text)
        found = _asks(quoted["named"] if quoted else text)
        if found is None or text.startswith("#"):
            continue
        keyed = _KEYED.match(text)
        complete = bool(quoted) or bool(keyed and text.count("{") == text.count("}"))
        alone = complete or (line[:1].isspace() and "=" not in text.partition("=")[0])
        yield Line(at + 1, line, alone, _is_plain(found) and not keyed)


def _setup(text: str) -> Iterator[Line]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    lines = text.split("\n")
    for node in ast.walk(tree):
        for item in node.elts if isinstance(node, ast.List | ast.Tuple) else ():
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                found = _asks(item.value)
                if found is not None:
                    line = lines[item.lineno - 1]
                    alone = item.end_lineno == item.lineno and bool(_QUOTED.match(line.strip()))
                    yield Line(item.lineno, line, alone, _is_plain(found))


def _notebook(source: Source) -> Iterator[Line]:
    """Yield the lines of cells that install Apex; their numbers are those of the joined cells."""
    if not isinstance(source.codec, NotebookCodec):
        return
    for cell, start in zip(source.codec.cells, source.codec.starts, strict=False):
        cell_lines = cell.masked.restore(cell.masked.text).split("\n")
        for number, line in enumerate(cell_lines, start):
            if line.lstrip().startswith(("!", "%")) and _INSTALL.search(line):
                yield Line(number, line.strip(), removable=False, plain=False)
