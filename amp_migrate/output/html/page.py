"""The page as a whole."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path

from amp_migrate import __version__
from amp_migrate.output.html import overview
from amp_migrate.output.html.files import files, prose
from amp_migrate.output.html.places import Addresses
from amp_migrate.output.html.style import STYLE
from amp_migrate.report import Report
from amp_migrate.words import plural


def render(report: Report, root: Path, paths: Sequence[str]) -> str:
    """Return the migration as one HTML document; `root` is the folder that paths are shown from."""
    addresses = Addresses(report, root)
    told = {
        "to-do": ("To do", overview.to_do(report, addresses)),
        "changes": ("Trains differently", overview.changes(report, addresses)),
        "programs": ("Programs", overview.programs(report, addresses)),
        "files": ("Files", _files(report, addresses)),
        "to-know": ("To know", overview.to_know(report, addresses)),
        "rules": ("Rules", _rules(report)),
        "next": ("Next", _next(report, paths)),
    }
    links = "".join(
        f'<a href="#{name}">{title}</a>' for name, (title, body) in told.items() if body
    )
    name = root.name or "this project"
    title = f"{name}: from Apex to native AMP"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f'<a class="skip" href="#main">to the content</a>{_header(report, title)}'
        f'<nav aria-label="sections">{links}</nav><main id="main">'
        f"{''.join(body for _, body in told.values())}</main>"
        f"<footer>amp-migrate {__version__}. Code was read, not run.</footer></body></html>\n"
    )


def _header(report: Report, title: str) -> str:
    return (
        f'<header><p class="tool">amp-migrate report</p><h1>{escape(title)}</h1>'
        f'<p class="lead">{_lead(report)}</p>{overview.tally(report)}</header>'
    )


def _lead(report: Report) -> str:
    counts = report.counts
    if not counts.found:
        return "No Apex AMP code was found." if not report.changes else _changed(report)
    left = sum(bool(unit.describe().get("refused")) for unit in report.units)
    where = f"{plural(counts.found, 'place')} in {plural(report.files_with_sites, 'file')}"
    number = len(report.units)
    train = (
        f"; {plural(number, 'program')} train{'s' * (number == 1)} with its AMP" if number else ""
    )
    stays = f" {plural(left, 'program')} cannot move yet." if left else ""
    return f"Apex is used at {where}{train}.{stays} {_changed(report)}"


def _changed(report: Report) -> str:
    if not report.changes:
        return "No file changes."
    return f"{plural(len(report.changes), 'file')} would change; nothing was written."


def _files(report: Report, addresses: Addresses) -> str:
    body = "".join(files(report, addresses))
    if not body:
        return ""
    about = "numbers in colour lead to the reason, and back"
    return f'<section id="files"><h2>Files <small>{about}</small></h2></section>{body}'


def _rules(report: Report) -> str:
    from amp_migrate.rules import rules

    used = {item.code for item in report.findings}
    rows = "".join(
        f'<dt id="{rule.code}">{rule.code}</dt><dd><b>{prose(rule.title)}</b> '
        f'<span class="quiet">{rule.safety.value}</span><br>{prose(_does(rule.doc))}</dd>'
        for rule in rules()
        if rule.code in used
    )
    if not rows:
        return ""
    return f'<section id="rules"><h2>Rules <small>amp-migrate explain CODE says more</small></h2><dl>{rows}</dl></section>'


def _next(report: Report, paths: Sequence[str]) -> str:
    if not report.changes:
        return ""
    named = shlex.join(paths)
    steps = (
        (f"amp-migrate {named}", "writes the changes above"),
        (
            "amp-migrate verify -- python train.py",
            "runs a training before and after, and compares every step",
        ),
        (f"amp-migrate {named} --check", "fails while something is left to do"),
    )
    rows = "".join(f"<li><code>{escape(c)}</code> <span>{what}</span></li>" for c, what in steps)
    return f'<section id="next"><h2>Next</h2><ol class="next">{rows}</ol></section>'


def _does(doc: str) -> str:
    """Return what a rule does and why, from its text."""
    parts = re.split(r"^## (.+)\n", doc, flags=re.M)
    told = dict(zip(parts[1::2], parts[2::2], strict=True))
    said = (" ".join(told.get(name, "").split()) for name in ("What it does", "Why"))
    return " ".join(part for part in said if part)
