"""What comes before the files: the tally, what is left to do, what changes the training, the programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from amp_migrate.output.html.files import prose
from amp_migrate.output.html.places import Addresses
from amp_migrate.output.text import Block, blocks
from amp_migrate.plan.model import Finding, Status
from amp_migrate.report import Report
from amp_migrate.words import plural


def tally(report: Report) -> str:
    """Return the bar of what was found and what becomes of it."""
    counts = report.counts
    parts = (
        ("migrated", counts.migrated, "move to native AMP and train as before"),
        ("fixed", counts.fixed, "are corrected on the way, which changes the training"),
        ("left", counts.left, "stay as they are and need a person"),
    )
    bars = "".join(f'<span class="{name}" style="flex:{n}"></span>' for name, n, _ in parts if n)
    words = "".join(
        f'<li class="{name if n else "none"}"><b>{n}</b> {name}<small>{what}</small></li>'
        for name, n, what in parts
    )
    return f'<div class="bar" aria-hidden="true">{bars}</div><ul class="tally">{words}</ul>'


def to_do(report: Report, addresses: Addresses) -> str:
    """Return what a person must decide: one entry for every cause, with the places it keeps."""
    entries = _told(report, Status.LEFT, addresses)
    entries += [_problem(item.path, item.reason, addresses) for item in report.problems]
    return _list("to-do", "What needs you", "the rest of each program waits for it", entries)


def changes(report: Report, addresses: Addresses) -> str:
    """Return what changes the training."""
    entries = _told(report, Status.FIXED, addresses)
    return _list("changes", "What trains differently", "corrections of known mistakes", entries)


def to_know(report: Report, addresses: Addresses) -> str:
    """Return the advice."""
    entries = _told(report, Status.NOTE, addresses)
    return _list("to-know", "What to know", "nothing has to be done about it", entries)


def programs(report: Report, addresses: Addresses) -> str:
    """Return a row for every program: its files, and the uses of Apex that hang together."""
    rows = "".join(
        _program(number, unit.describe(), addresses) for number, unit in enumerate(report.units, 1)
    )
    if not rows:
        return ""
    return (
        '<section id="programs"><h2>Programs <small>what hangs together is migrated together, or '
        'left together</small></h2><div class="wide"><table class="programs"><thead><tr><th>files'
        "<th>uses of Apex<th>outcome</thead>" + rows + "</table></div></section>"
    )


def _program(number: int, unit: Mapping[str, Any], addresses: Addresses) -> str:
    roles = unit.get("roles", [])
    names = {role["file"] for role in roles}
    rest = [file for file in unit["files"] if file not in names]
    files = [file for file in unit["files"] if file in names] + rest
    refused = unit.get("refused", "")
    outcome = '<span class="chip migrated">migrates</span>'
    if refused:
        outcome = f'<span class="chip left">left</span><p>{prose(refused)}</p>'
    rows = []
    for at, file in enumerate(files):
        uses = "".join(_use(role, addresses) for role in roles if role["file"] == file)
        uses = uses or '<span class="quiet">passes the GradScaler on</span>'
        name = escape(addresses.name(file))
        last = f'<td rowspan="{len(files)}">{outcome}</td>' if at == 0 else ""
        link = f'<a href="#{addresses.file(file)}">{name}</a>'
        rows.append(f"<tr><td>{link}</td><td>{uses}</td>{last}</tr>")
    return f'<tbody id="program{number}">{"".join(rows)}</tbody>'


def _use(role: Mapping[str, Any], addresses: Addresses) -> str:
    number = addresses.number(role["file"], role["line"])
    place = role["function"]
    where = "the module" if place == "<module>" else f"{place}()"
    anchor = addresses.line(role["file"], role["line"])
    title = escape(f"line {number}, in {where}")
    return f'<a class="use" href="#{anchor}" title="{title}">{escape(role["role"])} <b>{number}</b></a>'


def _told(report: Report, status: Status, addresses: Addresses) -> list[str]:
    """Return an entry for every cause: where, what, what to do, and the places that it keeps."""
    found = (block for block in blocks(report.findings) if block.status is status)
    return [_entry(block, addresses) for block in found]


def _entry(block: Block, addresses: Addresses) -> str:
    first = block.alike[0]
    message, advice = addresses.said(first)
    do = f'<p class="do">{prose(advice)}</p>' if advice else ""
    where = addresses.link(first.path, first.span.line)
    code = f'<a class="code" href="#{first.code}">{first.code}</a>'
    others = _links(block.alike[1:], addresses)
    also = f'<p class="kept">also at {others}</p>' if others else ""
    kept = [item for item in block.kept if item.status is Status.LEFT]
    keeps = ""
    if kept:
        count = plural(len(kept), "other place" if first.status is Status.LEFT else "place")
        it = "it is" if len(kept) == 1 else "they are"
        keeps = f'<p class="kept">keeps {count} as {it}: {_links(kept, addresses)}</p>'
    return (
        f'<li class="{block.status.value}"><p class="what">{where} {code} {prose(message)}</p>'
        f"{do}{also}{keeps}</li>"
    )


def _links(findings: Iterable[Finding], addresses: Addresses) -> str:
    places = dict.fromkeys((item.path, item.span.line) for item in findings)
    return " ".join(addresses.link(path, line) for path, line in places)


def _problem(path: str, reason: str, addresses: Addresses) -> str:
    name = escape(addresses.name(path))
    return f'<li class="left"><p class="what"><b>{name}</b> {prose(reason)}</p></li>'


def _list(anchor: str, title: str, about: str, entries: list[str]) -> str:
    if not entries:
        return ""
    return (
        f'<section id="{anchor}"><h2>{title} <small>{about}</small></h2>'
        f'<ul class="told">{"".join(entries)}</ul></section>'
    )
