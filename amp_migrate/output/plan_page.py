"""The plan of a run, before anything is rewritten."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from amp_migrate.output.style import Style
from amp_migrate.report import Compared, Unit
from amp_migrate.words import plural


def plan_text(units: Sequence[Unit], compared: Sequence[Compared], style: Style) -> str:
    """Return every unit, file by file and line by line: what is there, and what was decided about it.

    Below stands what happens in each function that changes, by its lines before and after.
    """
    pages = ["\n".join(_page(n, unit.describe(), style)) for n, unit in enumerate(units, 1)]
    if compared:
        pages.append("\n".join(_events(compared, style)))
    return "\n\n".join(pages) + "\n" if pages else "nothing is planned\n"


def plan_json(units: Sequence[Unit], compared: Sequence[Compared]) -> str:
    """Return every unit as one JSON document, with the events that were compared."""
    document = {
        "version": 1,
        "units": [unit.describe() for unit in units],
        "compared": [events_of(item) for item in compared],
    }
    return json.dumps(document, indent=2) + "\n"


def events_of(compared: Compared) -> dict[str, object]:
    """Return the events of a function as plain data."""
    return {
        "path": compared.path,
        "function": compared.function,
        "events": [event._asdict() for event in compared.events],
    }


def _events(compared: Sequence[Compared], style: Style) -> Iterator[str]:
    yield f"{style('what happens', 'bold')}: lines before -> after"
    for item in compared:
        yield f"  {style(item.path, 'cyan')}  {item.function}"
        for event in item.events:
            yield f"{_side(event.before):>7} -> {_side(event.after):<5} {event.what}"


def _side(line: int | None) -> str:
    return "-" if line is None else str(line)


def _page(number: int, unit: Mapping[str, Any], style: Style) -> Iterator[str]:
    roles, choices = unit.get("roles", []), unit.get("decisions", [])
    size = unit.get(
        "size", f"{plural(len(roles), 'use')} of Apex in {plural(len(unit['files']), 'file')}"
    )
    yield f"{style(f'group {number}', 'bold')}: {size}"
    if unit.get("refused"):
        yield f"  {style('left', 'yellow')}: {unit['refused']}"
    for file in unit["files"]:
        yield f"  {style(file, 'cyan')}"
        here = {item["line"] for item in [*roles, *choices] if item["file"] == file}
        for line in sorted(here):
            yield from _line(file, line, roles, choices, style)


def _line(
    file: str,
    line: int,
    roles: Sequence[Mapping[str, Any]],
    choices: Sequence[Mapping[str, Any]],
    style: Style,
) -> Iterator[str]:
    number = f"{line:>7}"
    texts = [f"{r['role']} in {r['function']}" for r in roles if _at(r, file, line)]
    texts += [f"{style(c['code'], 'bold')}  {c['why']}" for c in choices if _at(c, file, line)]
    for text in texts:
        yield f"{number}  {text}"
        number = " " * 7


def _at(item: Mapping[str, Any], file: str, line: int) -> bool:
    return bool(item["file"] == file and item["line"] == line)
