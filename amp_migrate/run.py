"""One run from paths to a report: find, read and migrate; then write what passed every check."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from amp_migrate.discover import Hit, Other, Skipped, discover, folders, uses_apex
from amp_migrate.plan import Finding
from amp_migrate.settings import Settings
from amp_migrate.source import Source, UnreadableSource, UnwritableSource, check_writable, write

_SEED = b"\n# amp-migrate: the file that leads to others"


class Unit(Protocol):
    """What the engine says about one AMP unit, whose files belong together."""

    files: list[str]

    def describe(self) -> dict[str, object]:
        """Return the files, roles and decisions of the unit as plain data."""


class Counts(NamedTuple):
    """How many Apex sites there were, and what became of them: found = migrated + fixed + left."""

    found: int = 0
    migrated: int = 0
    fixed: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that may hold Apex code and was not migrated, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file before and after: its bytes, and the text after."""

    source: Source
    text: str
    after: bytes

    @property
    def path(self) -> str:
        """The name of the file."""
        return self.source.path

    @property
    def before(self) -> bytes:
        """The bytes the file had."""
        return self.source.data


@dataclass(frozen=True, slots=True)
class Exit:
    """The exit code and what decided it; `reason` is empty where there is nothing to say."""

    code: int
    reason: str = ""


@dataclass(slots=True)
class Report:
    """What a run found and did, for every form of output. `changes` are those that can be made."""

    sources: dict[str, Source] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    units: Sequence[Unit] = ()
    changes: list[FileChange] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    passed_over: list[Skipped] = field(default_factory=list)
    written: bool = False

    def exit(self, *, check: bool, diff: bool, exit_zero: bool) -> Exit:
        """Decide the exit code: 2 for problems, 1 for what is left to do, else 0."""
        if self.problems:
            return Exit(2, f"{plural(len(self.problems), 'file')} could not be migrated")
        pending = len(self.changes) if check else 0
        left = 0 if diff and not check else self.counts.left
        reasons = [
            *([f"{plural(pending, 'file')} would change"] if pending else []),
            *([f"{plural(left, 'site')} left for a human"] if left else []),
        ]
        return Exit(1 if reasons and not exit_zero else 0, " and ".join(reasons))


def plural(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def run_paths(paths: Collection[str], settings: Settings, *, force_exclude: bool = False) -> Report:
    """Migrate the files at and below `paths`; nothing is written yet."""
    report = Report()
    hits: dict[str, Hit] = {}
    others: dict[str, Other] = {}
    for item in discover(paths, settings, force_exclude=force_exclude):
        if isinstance(item, Hit):
            hits[item.path] = item
        elif isinstance(item, Other):
            others[item.path] = item
        elif item.error:
            report.problems.append(Problem(item.path, item.reason))
        else:
            report.passed_over.append(item)
    context = _context(hits, others, folders(paths))
    _migrate(report, [*hits.values(), *context], settings)
    return report


def _context(hits: dict[str, Hit], others: dict[str, Other], roots: list[str]) -> list[Hit]:
    """Return the files that Apex code reaches or is reached from, though they do not use it themselves."""
    seeds = {path: hit.data + _SEED for path, hit in hits.items() if b"apex" in hit.data}
    if not seeds or not others:
        return []
    from amp_migrate.project.select import relevant

    contents: dict[str, bytes | Callable[[], bytes]] = {
        **{path: hit.data for path, hit in hits.items()},
        **seeds,
        **{path: other.read for path, other in others.items()},
    }
    found = (others[path] for path in relevant(contents, roots, _SEED) if path in others)
    return [Hit(other.path, other.read()) for other in found if not other.ignored]


def run_text(name: str, data: bytes, settings: Settings) -> Report:
    """Migrate the bytes of one file that is not read from the disk."""
    report = Report()
    _migrate(report, [Hit(name, data)], settings)
    return report


def write_changes(report: Report) -> None:
    """Write the changes; where a file cannot be written, no file of its unit is."""
    refused = {}
    for change in report.changes:
        try:
            check_writable(change.path, expected=change.before)
        except UnwritableSource as error:
            refused[error.path] = error.reason
    _withhold(report, refused)
    for change in report.changes:
        write(change.path, change.after)
    report.written = True


def _migrate(report: Report, hits: list[Hit], settings: Settings) -> None:
    sources = list(_decoded(hits, report.problems))
    if not sources:
        return
    from amp_migrate.engine import migrate, unstable

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = migrate(sources, settings)
        again = (
            unstable(result, settings) if any(o.after is not None for o in result.outcomes) else []
        )
    report.sources = {source.path: source for source in sources}
    report.findings = result.plan.findings()
    tally = result.tally
    report.counts = Counts(tally.found, tally.migrated, tally.fixed, tally.left)
    report.units = result.units
    refused = dict.fromkeys(again, "a second run would change it again")
    for outcome in sorted(result.outcomes, key=lambda outcome: outcome.path):
        if outcome.failed:
            report.problems.append(Problem(outcome.path, outcome.failed))
        elif outcome.after is not None:
            try:
                after = outcome.before.encode(outcome.after)
                report.changes.append(FileChange(outcome.before, outcome.after, after))
            except UnwritableSource as error:
                refused[error.path] = error.reason
    _withhold(report, refused)


def _withhold(report: Report, refused: dict[str, str]) -> None:
    """Take back the changes of files that must stay, and of all files of the same unit."""
    report.problems += [Problem(path, f"stays as it was: {why}") for path, why in refused.items()]
    kept = set(refused)
    while (
        more := {path for unit in report.units if kept & set(unit.files) for path in unit.files}
        - kept
    ):
        kept |= more
    report.problems += [
        Problem(change.path, "stays as it was, as a file it works with does")
        for change in report.changes
        if change.path in kept and change.path not in refused
    ]
    report.changes = [change for change in report.changes if change.path not in kept]


def _decoded(hits: Iterable[Hit], problems: list[Problem]) -> Iterator[Source]:
    """Yield the files that are text; one that is not is a problem only if it has Apex code."""
    for hit in hits:
        try:
            yield Source.from_bytes(hit.path, hit.data)
        except UnreadableSource as error:
            if uses_apex(hit.data):
                problems.append(Problem(error.path, error.reason))
