"""Write a result to files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from amp_migrate.equivalence.report.json_report import as_json
from amp_migrate.equivalence.result import Result


def targets(
    out: Path | None, json_file: Path | None, html_file: Path | None, png_file: Path | None
) -> dict[str, Path]:
    """Return the file per format; `out` stands for verify.json, verify.html and verify.png."""
    given = {"json": json_file, "html": html_file, "png": png_file}
    chosen = {form: path for form, path in given.items() if path is not None}
    if out is not None:
        chosen = {form: out / f"verify.{form}" for form in given} | chosen
    return chosen


def write(result: Result, targets: dict[str, Path]) -> Iterator[Path]:
    """Write every asked format and yield its path."""
    for form, path in targets.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if form == "json":
            path.write_text(json.dumps(as_json(result), indent=1) + "\n", encoding="utf-8")
        elif form == "html":
            from amp_migrate.equivalence.report.html import render_html

            path.write_text(render_html(result), encoding="utf-8")
        else:
            from amp_migrate.equivalence.report.png import write_png

            write_png(result, path)
        yield path
