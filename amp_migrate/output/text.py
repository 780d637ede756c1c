"""The findings for people: one block for each cause, with all the places that it keeps as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from amp_migrate.output.place import Places, Where, shown
from amp_migrate.output.style import Style
from amp_migrate.plan.model import Finding, Place, Status
from amp_migrate.report import Report
from amp_migrate.words import plural

_COLOURS = {
    Status.LEFT: "red",
    Status.FIXED: "yellow",
    Status.NOTE: "cyan",
    Status.MIGRATED: "green",
}
_COUNTED = frozenset({Status.MIGRATED, Status.ROUTINE})
_ORDER = (Status.LEFT, Status.FIXED, Status.NOTE)


@dataclass(slots=True)
class Block:
    """Findings that say the same, the first of which is shown, and those that they keep as they are."""

    alike: list[Finding] = field(default_factory=list)
    kept: list[Finding] = field(default_factory=list)

    @property
    def status(self) -> Status:
        """What became of it: a cause that keeps Apex code is left, also where it is none itself."""
        left = any(item.status is Status.LEFT for item in self.kept)
        return Status.LEFT if left else self.alike[0].status


def blocks(findings: Iterable[Finding]) -> list[Block]:
    """Group findings by their cause: first what is left, then what is fixed, then notes."""
    told = [item for item in findings if item.status not in _COUNTED]
    roots = {item.place for item in told if item.cause is None}
    found: dict[tuple[object, ...], Block] = {}
    owner: dict[Place, Block] = {}
    for item in told:
        if item.cause not in roots:
            key = (item.code, item.status, item.message, item.advice)
            block = found.setdefault(key, Block())
            block.alike.append(item)
            owner.setdefault(item.place, block)
    for item in told:
        if item.cause is not None and item.cause in roots:
            owner[item.cause].kept.append(item)
    return sorted(found.values(), key=lambda block: _ORDER.index(block.status))


def text(report: Report, style: Style) -> str:
    """Return the findings, a block for each cause; routine migrations are only counted."""
    places = Places(report)
    return "\n".join(_block(block, places, style) for block in blocks(report.findings))


def concise(report: Report, style: Style) -> str:
    """Return one line for every finding, migrations included."""
    places = Places(report)
    findings = [item for item in report.findings if item.status is not Status.ROUTINE]
    return "".join(_line(item, item.status, places, style) + "\n" for item in findings)


def _line(finding: Finding, status: Status, places: Places, style: Style) -> str:
    code = style(finding.code, "bold", _COLOURS[status])
    return f"{places.of(finding)} {code} {status.value}: {places.said(finding)[0]}"


def _block(block: Block, places: Places, style: Style) -> str:
    first = block.alike[0]
    lines = [_line(first, block.status, places, style)]
    lines += [f"    {line}" for line in places.said(first)[1].splitlines()]
    here = places.of(first)
    others = [w for item in block.alike[1:] if not _same_line(w := places.of(item), here)]
    lines += [style(line, "dim") for line in _also(first.path, others)]
    kept = [places.of(item) for item in block.kept if item.status is Status.LEFT]
    if kept:
        count = plural(len(kept), "more place" if first.status is Status.LEFT else "place")
        lines.append(f"    this keeps {count} as {'it is' if len(kept) == 1 else 'they are'}:")
        lines += [style(f"      {line}", "dim") for line in _listed(kept)]
    return "".join(line + "\n" for line in lines)


def _same_line(one: Where, other: Where) -> bool:
    return (one.path, one.number) == (other.path, other.number)


def _also(path: str, others: Sequence[Where]) -> Iterator[str]:
    if all(where.path == path for where in others):
        if others:
            yield f"    also at {', '.join(dict.fromkeys(where.line_of for where in others))}"
        return
    listed = list(_listed(others))
    if len(listed) == 1:
        yield f"    also at {listed[0]}"
        return
    yield "    also at"
    yield from (f"      {line}" for line in listed)


def _listed(places: Iterable[Where]) -> Iterator[str]:
    """Yield a line for every file, with the lines in it."""
    ordered = sorted(places, key=lambda where: (where.path, where.cell or 0, where.line))
    for path, group in groupby(ordered, key=lambda where: where.path):
        numbers = dict.fromkeys(where.number for where in group)
        yield f"{shown(path)}:{', '.join(numbers)}"
