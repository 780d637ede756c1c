"""Patches that plain ``git apply`` takes: from any folder, with the bytes of the file as they are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from amp_migrate.source.align import Change, changes
from amp_migrate.source.tracked import repository

_CONTEXT = 3
_ESCAPES = dict(zip(b'\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True))


class Named(NamedTuple):
    """A file by its name in a patch; `rooted` says that the name starts at the root of its repository."""

    name: str
    rooted: bool = False


def patch(path: str, before: bytes, after: bytes) -> bytes:
    """Return the unified diff of one file; empty where nothing differs.

    In a git repository the names start at its root, as those of ``git diff`` do; elsewhere they are `path`.
    """
    if before == after:
        return b""
    old, new = _lines(before), _lines(after)
    head = _head(named(path)).encode()
    return head + b"".join(_hunk(group, old, new) for group in _groups(changes(old, new)))


def named(path: str) -> Named:
    """Return how a patch names a file: git finds it from its root alone, wherever it is run."""
    place = Path(path).resolve()
    for start in (Path.cwd(), place):
        root = repository(start)
        if root is not None and place.is_relative_to(root):
            return Named(place.relative_to(root).as_posix(), rooted=True)
    return Named(path)


def skipped_by_git(paths: Iterable[str]) -> Path | None:
    """Return the root that a patch has to be applied from, where the working directory does not hold all `paths`.

    ``git apply`` says nothing and passes over files outside of the folder it is run in.
    """
    here = Path.cwd()
    outside = [place for path in paths if not (place := Path(path).resolve()).is_relative_to(here)]
    return next(filter(None, map(repository, outside)), None)


def _head(file: Named) -> str:
    """Return the lines before the hunks. Without a ``diff --git`` line names start at the working directory."""
    old, new = _name("a", file.name), _name("b", file.name)
    first = f"diff --git {old} {new}\n" if file.rooted else ""
    tab = "\t" if " " in file.name and not old.startswith('"') else ""
    return f"{first}--- {old}{tab}\n+++ {new}{tab}\n"


def _name(side: str, path: str) -> str:
    """Return a file name as git reads it: in quotes with octal bytes where it is not plain."""
    data = os.fsencode(f"{side}/{path.lstrip('/')}")
    if all(0x20 <= byte < 0x7F and byte not in _ESCAPES for byte in data):
        return data.decode()
    return '"' + "".join(map(_quoted, data)) + '"'


def _quoted(byte: int) -> str:
    if byte in _ESCAPES:
        return "\\" + _ESCAPES[byte]
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def _lines(data: bytes) -> list[bytes]:
    """Split on line feeds alone, as git does: a form feed or a carriage return ends no line."""
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _groups(found: list[Change]) -> Iterator[list[Change]]:
    """Yield changes so near that their context lines touch."""
    group: list[Change] = []
    for change in found:
        if group and change.start - group[-1].end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(change)
    yield group


def _hunk(group: list[Change], old: list[bytes], new: list[bytes]) -> bytes:
    first, last = group[0], group[-1]
    before = min(_CONTEXT, first.start)
    after = min(_CONTEXT, len(old) - last.end)
    old_range = _range(first.start - before, last.end + after)
    new_range = _range(first.new_start - before, last.new_end + after)
    parts = [f"@@ -{old_range} +{new_range} @@\n".encode()]
    at = first.start - before
    for change in group:
        parts += [_line(b" ", line) for line in old[at : change.start]]
        parts += [_line(b"-", line) for line in old[change.start : change.end]]
        parts += [_line(b"+", line) for line in new[change.new_start : change.new_end]]
        at = change.end
    parts += [_line(b" ", line) for line in old[at : last.end + after]]
    return b"".join(parts)


def _range(start: int, end: int) -> str:
    count = end - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _line(sign: bytes, line: bytes) -> bytes:
    return (
        sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"
    )
