"""Where a project keeps torch at a version that has no native AMP yet, or admits one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from amp_migrate.dependencies.files import IMAGES, NOTEBOOKS, every, is_one
from amp_migrate.dependencies.told import MAKERS, TEXTS, container_below, named
from amp_migrate.dependencies.torch_floor import DECLARED, lowest_versions
from amp_migrate.plan.model import Finding, Status
from amp_migrate.report import FileChange, Report
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source, UnreadableSource
from amp_migrate.source.span import Span

CODE = "AMP310"
_Version = tuple[int, ...]
_NATIVE = re.compile(r"\btorch\.(?:cuda\.)?amp\b")
# The first version that has a GradScaler under each name.
_SINCE: dict[str, _Version] = {"torch.cuda.amp": (1, 6), "torch.amp": (2, 3)}
_BOUND = re.compile(r"\s*(?P<sign>[<>=!~^]*)\s*(?P<release>\d+(?:\.\d+)*)")
_IMAGE = re.compile(r"^\s*FROM\s+(?:\S*/)?pytorch/pytorch:(?P<release>\d+(?:\.\d+)+)", re.I)
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_REPLICATES = re.compile(r"(?<![A-Za-z_])DataParallel\(")
_ANY = 10**6


class _Need(NamedTuple):
    """A version of torch from which on there is something that the written code has, and what that is."""

    since: _Version
    what: str


class Limit(NamedTuple):
    """What keeps torch below a version: the line, from 1, and the columns of what says so."""

    line: int
    start: int
    end: int
    said: str


def note_limits(report: Report, paths: Iterable[str], settings: Settings) -> None:
    """Note what keeps torch below the version that has the AMP which is written."""
    if not settings.enabled(CODE) or not any(map(_brings, report.changes)):
        return
    needs = _needs(report)
    for name, data in every(paths, settings, (*TEXTS, *MAKERS)):
        source = report.sources.get(name) or source_of(name, data)
        if source is None:
            continue
        found = list(_lacking(source, needs))
        if found:
            report.sources[name] = source
            report.findings += found


def _needs(report: Report) -> list[_Need]:
    """Return what the written code needs of torch, the lowest version first."""
    api = report.api
    needs = [_Need(_SINCE[api], f"{api}.GradScaler, which is there")]
    if api == "torch.cuda.amp" and any(
        _REPLICATES.search(source.text) for source in report.sources.values()
    ):
        needs.append(_Need((1, 7), "autocast in the replicas of DataParallel, where it comes"))
    return needs


def _lacking(source: Source, needs: list[_Need]) -> Iterator[Finding]:
    """Yield what each need lacks in a file: of a line, that of the lowest version alone."""
    told = set[tuple[int, int]]()
    for need in needs:
        last = needs[-1].since
        found = [(limit, "has no") for limit in limits(source, need.since)]
        found += [(limit, "admits torch without") for limit in admitting(source, need.since)]
        for limit, lacks in found:
            if (limit.line, limit.start) not in told:
                told.add((limit.line, limit.start))
                yield _finding(source.path, limit, lacks, need, last)


def is_held_below(version: _Version, paths: Iterable[str], settings: Settings) -> bool:
    """Tell whether some file below `paths`, as a Dockerfile or the requirements of a part, keeps torch below a version."""
    return any(
        source is not None and any(True for _ in limits(source, version))
        for name, data in every(paths, settings)
        if b"torch" in data
        for source in (source_of(name, data),)
    )


def limits(source: Source, since: _Version) -> Iterator[Limit]:
    """Yield what admits no torch of a version or a later one, in order."""
    if is_one(source.path, NOTEBOOKS):
        return
    if is_one(source.path, TEXTS):
        yield from _told(source, since, later=False)
        return
    image = is_one(source.path, IMAGES)
    for number, line in enumerate(source.text.split("\n"), 1):
        text = _COMMENT.sub("", line)
        if image and (based := _IMAGE.match(text)) and _release(based["release"]) < since:
            yield Limit(number, *based.span(), f"torch {based['release']}")
        if image and (contained := container_below(text, since)):
            yield Limit(number, *contained.span(), f"the torch of {contained['release']}")
        for match in DECLARED.finditer(text):
            if _highest(match["listed"] or match["keyed"]) < since:
                said = " ".join(match[0].split())
                yield Limit(number, *match.span(), f"`{said}`")


def admitting(source: Source, since: _Version) -> Iterator[Limit]:
    """Yield the requirements that begin below a version and admit it as well, in order."""
    if is_one(source.path, NOTEBOOKS):
        return
    if is_one(source.path, TEXTS):
        yield from _told(source, since, later=True)
        return
    for number, line in enumerate(source.text.split("\n"), 1):
        for match in DECLARED.finditer(_COMMENT.sub("", line)):
            bounds = match["listed"] or match["keyed"]
            floors = lowest_versions(match[0])
            if floors and min(floors) < since and _highest(bounds) >= since:
                yield Limit(number, *match.span(), f"`{' '.join(match[0].split())}`")


def _told(source: Source, since: _Version, later: bool) -> Iterator[Limit]:
    """Yield the first version that a text for people names, if all are below one: one with `later` ones, or one alone."""
    versions = list(named(source))
    below = [each for each in versions if each[4] < since]
    if len(below) == len(versions) and below and below[0][5] is later:
        number, start, end, text, _, _ = below[0]
        yield Limit(number, start, end, f"`{text}`")


def _brings(change: FileChange) -> bool:
    """Tell whether a change writes native AMP where there was none, or more of it."""
    before, after = (len(_NATIVE.findall(text)) for text in (change.source.text, change.text))
    return after > before


def _highest(bounds: str) -> _Version:
    """Return a version above which a requirement admits none."""
    return min(map(_end, bounds.split(",")), default=(_ANY,))


def _end(bound: str) -> _Version:
    found = _BOUND.match(bound)
    if found is None:
        return (_ANY,)
    sign, release = found["sign"], _release(found["release"])
    if sign in ("<", "<="):
        return release if sign == "<=" else _before(release)
    if sign == "~=":
        return (*release[:-2], release[-2], _ANY) if len(release) > 1 else (_ANY,)
    if sign == "^":
        return (release[0], _ANY)
    if sign in ("", "=", "==", "==="):
        return (*release, _ANY)  # 1.6 is met by 1.6.1 in a file of conda
    return (_ANY,)


def _before(release: _Version) -> _Version:
    """Return the last version before one."""
    *first, last = release
    while last == 0 and first:
        *first, last = first
    return (*first, last - 1, _ANY)


def _release(text: str) -> _Version:
    return tuple(map(int, text.split(".")))


def source_of(name: str, data: bytes) -> Source | None:
    """Return a file that is text, and None for any other."""
    try:
        return Source.from_bytes(name, data)
    except UnreadableSource:
        return None


def _finding(path: str, limit: Limit, lacks: str, need: _Need, take: _Version) -> Finding:
    first = ".".join(map(str, need.since))
    span = Span(limit.line, limit.start, limit.line, limit.end)
    message = f"{limit.said} {lacks} {need.what} from torch {first} on"
    verb = "take" if lacks == "has no" else "ask for"
    advice = f"{verb} torch {'.'.join(map(str, take))} or a later one"
    if take != need.since:
        advice += ", from which on autocast comes to the replicas of DataParallel"
    return Finding(path, span, CODE, Status.NOTE, message, advice)
