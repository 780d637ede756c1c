"""The parameters that a docstring lists, in Google, NumPy or Sphinx style."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_GOOGLE = re.compile(r"(Args|Arguments|Parameters|Params):\s*")
_FIELD = re.compile(r"(?P<start>\s*[:@]param\s+)(?:[^:]*?\s)?\*{0,2}\w+:")
_GOOGLE_LIST = re.compile(r"((Keyword|Other) )?(Args|Arguments|Parameters|Params):\s*")
_NUMPY_LIST = re.compile(r"(Other )?Parameters")
_NAMES = r"(?P<names>[\\*]*\w+(?:\s*,\s*[\\*]*\w+)*)"
_ENTRY = re.compile(rf"\s*{_NAMES}\s*(?:[:('\"]|$)")
_FIELD_ENTRY = re.compile(
    r"\s*[:@](?:param|parameter|arg|argument|key|keyword|kwarg|type|kwtype)\s+(?:[^:]*\s)?"
    r"(?P<names>[\\*]*\w+)\s*:"
)
_OPENING = re.compile(r"[A-Za-z]*(?:'''|\"\"\"|'|\")")
_CLOSING = re.compile(r"\s*(?:'''|\"\"\"|'|\")$")


def add_to_docstring(literal: str, name: str, doc: str) -> str:
    """Return the source text of a docstring with a line for a parameter after the last listed one.

    A docstring that lists no parameters comes back as it is.
    """
    closing = _CLOSING.search(literal)
    if closing is None or not literal.endswith(("'''", '"""')):
        return literal
    lines = literal[: closing.start()].split("\n")
    for add in (_google, _numpy, _fields):
        changed = add(lines, name, doc)
        if changed is not None:
            return "\n".join(changed) + closing.group()
    return literal


def rename_in_docstring(literal: str, names: Mapping[str, str]) -> str:
    """Return the source text of a docstring whose listed parameters have other names.

    `names` holds the new name by the old one; what is said of a parameter stays as it is.
    """
    opening = _OPENING.match(literal)
    start = opening.end() if opening else 0
    lines = literal[start:].split("\n")
    listed = {*_google_entries(lines), *_numpy_entries(lines)}
    for at, line in enumerate(lines):
        entry = (_ENTRY if at in listed else _FIELD_ENTRY).match(line)
        if entry:
            head, tail = line[: entry.start("names")], line[entry.end("names") :]
            renamed = re.sub(r"\w+", lambda m: names.get(m.group(), m.group()), entry["names"])
            lines[at] = head + renamed + tail
    return literal[:start] + "\n".join(lines)


def _google_entries(lines: list[str]) -> Iterator[int]:
    """Yield the lines of a Google list that start a parameter."""
    for at, line in enumerate(lines):
        if not _GOOGLE_LIST.fullmatch(line.strip()):
            continue
        inside = range(at + 1, _section_end(lines, at + 1, _indent(line)))
        filled = [n for n in inside if lines[n].strip()]
        yield from (n for n in filled if _indent(lines[n]) == _indent(lines[filled[0]]))


def _numpy_entries(lines: list[str]) -> Iterator[int]:
    """Yield the lines of a NumPy list that may start a parameter."""
    inside, margin = False, ""
    for at, line in enumerate(lines):
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if line.strip() and set(below.strip()) == {"-"}:
            inside, margin = _NUMPY_LIST.fullmatch(line.strip()) is not None, _indent(below)
        elif inside and line.strip() and _indent(line) == margin:
            yield at


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _section_end(lines: list[str], start: int, margin: str) -> int:
    """Return the line after the last of a section whose lines are indented more than `margin`."""
    end = start
    for at in range(start, len(lines)):
        if lines[at].strip():
            if len(_indent(lines[at])) <= len(margin):
                break
            end = at + 1
    return end


def _google(lines: list[str], name: str, doc: str) -> list[str] | None:
    for at, line in enumerate(lines):
        if _GOOGLE.fullmatch(line.strip()):
            end = _section_end(lines, at + 1, _indent(line))
            if end > at + 1:
                return [*lines[:end], f"{_indent(lines[at + 1])}{name}: {doc}", *lines[end:]]
    return None


def _numpy(lines: list[str], name: str, doc: str) -> list[str] | None:
    for at in range(len(lines) - 2):
        if lines[at].strip() != "Parameters" or set(lines[at + 1].strip()) != {"-"}:
            continue
        margin = _indent(lines[at])
        end = at + 2
        while end < len(lines) and lines[end].strip():
            end += 1
        body = [line for line in lines[at + 2 : end] if len(_indent(line)) > len(margin)]
        deeper = _indent(body[0]) if body else margin + "    "
        return [*lines[:end], f"{margin}{name}", f"{deeper}{doc}", *lines[end:]]
    return None


def _fields(lines: list[str], name: str, doc: str) -> list[str] | None:
    found = [(at, m) for at, line in enumerate(lines) if (m := _FIELD.match(line))]
    if not found:
        return None
    at, last = found[-1]
    margin = _indent(lines[at])
    end = _section_end(lines, at + 1, margin)
    if end < len(lines) and re.match(r"\s*[:@]type\s", lines[end]):
        end = _section_end(lines, end + 1, margin)
    return [*lines[:end], f"{last.group('start')}{name}: {doc}", *lines[end:]]
