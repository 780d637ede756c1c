"""One more parameter in a docstring that lists them: Google, NumPy or Sphinx style."""

from __future__ import annotations

import re

_GOOGLE = re.compile(r"(Args|Arguments|Parameters|Params):\s*")
_FIELD = re.compile(r"(?P<start>\s*[:@]param\s+)(?:[^:]*?\s)?\*{0,2}\w+:")
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
