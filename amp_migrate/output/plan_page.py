"""The plan of a run, before anything is rewritten."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from amp_migrate.output.style import Style
from amp_migrate.report import Unit


def plan_text(units: Sequence[Unit], style: Style) -> str:
    """Return every unit as indented text."""
    blocks = []
    for number, unit in enumerate(units, 1):
        lines = [style(f"unit {number}", "bold"), *_shown(unit.describe(), "  ", style)]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks) or "no AMP unit\n"


def plan_json(units: Sequence[Unit]) -> str:
    """Return every unit as one JSON document."""
    document = {"version": 1, "units": [unit.describe() for unit in units]}
    return json.dumps(document, indent=2) + "\n"


def _shown(value: object, margin: str, style: Style) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            label = style(str(key).replace("_", " "), "cyan")
            if isinstance(item, (dict, list, tuple)):
                yield f"{margin}{label}:"
                yield from _shown(item, margin + "  ", style)
            else:
                yield f"{margin}{label}: {item}"
    elif isinstance(value, (list, tuple)):
        for item in value:
            lines = list(_shown(item, "", style))
            yield f"{margin}- {lines[0] if lines else ''}"
            yield from (f"{margin}  {line}" for line in lines[1:])
    else:
        yield f"{margin}{value}"
