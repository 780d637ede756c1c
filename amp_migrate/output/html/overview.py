"""What comes before the files: the tally, what is left to do, what changes the training, the programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from amp_migrate.output.html.files import prose
from amp_migrate.output.html.places import Addresses
from amp_migrate.plan import Finding, Status
from amp_migrate.report import Report
from amp_migrate.words import plural

Spot = tuple[str, int]


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
    entries = [_left(*cause, addresses) for cause in _causes(report)]
    entries += [_problem(item.path, item.reason, addresses) for item in report.problems]
    return _list("to-do", "What needs you", "the rest of each program waits for it", entries)


def changes(report: Report, addresses: Addresses) -> str:
    """Return what changes the training."""
    fixed = [item for item in report.findings if item.status is Status.FIXED]
    entries = [_told(group, addresses) for group in _alike(fixed)]
    return _list("changes", "What trains differently", "corrections of known mistakes", entries)


def to_know(report: Report, addresses: Addresses) -> str:
    """Return the advice."""
    causes = {id(cause) for cause, _ in _causes(report)}
    notes = [i for i in report.findings if i.status is Status.NOTE and id(i) not in causes]
    entries = [_told(group, addresses) for group in _alike(notes)]
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


def _causes(report: Report) -> Iterator[tuple[Finding, list[Spot]]]:
    """Yield every reason why something is left, with the places it keeps."""
    left = [item for item in report.findings if item.status is Status.LEFT]
    spoken: set[Spot] = set()
    for unit in report.units:
        told: Mapping[str, Any] = unit.describe()
        cause = next((i for i in report.findings if i.message == told.get("refused")), None)
        if cause is None:
            continue
        spots = [(role["file"], role["line"]) for role in told.get("roles", [])]
        spots += [_spot(i) for i in left if i.path in told["files"] and not i.advice]
        kept = [spot for spot in dict.fromkeys(spots) if spot not in {*spoken, _spot(cause)}]
        spoken.update(kept, [_spot(cause)])
        yield cause, sorted(kept)
    for group in _alike(item for item in left if _spot(item) not in spoken):
        yield group[0], [_spot(item) for item in group[1:]]


def _spot(item: Finding) -> Spot:
    return item.path, item.span.line


def _alike(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for item in findings:
        groups.setdefault((item.code, item.message, item.advice), []).append(item)
    return groups.values()


def _left(cause: Finding, kept: list[Spot], addresses: Addresses) -> str:
    do = f'<p class="do">{prose(cause.advice)}</p>' if cause.advice else ""
    more = ""
    if kept:
        links = " ".join(addresses.link(path, line) for path, line in dict.fromkeys(kept))
        it = "it is" if len(kept) == 1 else "they are"
        more = f'<p class="kept">keeps {plural(len(kept), "other place")} as {it}: {links}</p>'
    return f'<li class="left">{_head(cause, addresses)}{do}{more}</li>'


def _told(group: list[Finding], addresses: Addresses) -> str:
    first = group[0]
    do = f'<p class="do">{prose(first.advice)}</p>' if first.advice else ""
    links = " ".join(addresses.link(item.path, item.span.line) for item in group[1:])
    more = f'<p class="kept">also at {links}</p>' if links else ""
    return f'<li class="{first.status.value}">{_head(first, addresses)}{do}{more}</li>'


def _head(item: Finding, addresses: Addresses) -> str:
    where = addresses.link(item.path, item.span.line)
    code = f'<a class="code" href="#{item.code}">{item.code}</a>'
    return f'<p class="what">{where} {code} {prose(item.message)}</p>'


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
