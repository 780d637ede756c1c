"""One run from paths to a report: find, read and migrate; then write what passed every check."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from amp_migrate.output import progress
from amp_migrate.report import Counts, FileChange, Problem, Report
from amp_migrate.settings import Settings
from amp_migrate.source.discover import Hit, Other, discover, folders, uses_apex

if TYPE_CHECKING:
    from amp_migrate.modules.select import Selection
    from amp_migrate.outcome import Phase
    from amp_migrate.source.file import Source

_NATIVE = re.compile(rb"\b(?:GradScaler|autocast)\b")
_OLD_NATIVE = re.compile(rb"torch\.cuda\.amp\b|from\s+torch\.cuda\s+import\s[^\n]*\bamp\b")
_NEW_SPELLING = (2, 4)
_SEED = b"\n# amp-migrate: the file that leads to others"


def run_paths(paths: Collection[str], settings: Settings, *, force_exclude: bool = False) -> Report:
    """Migrate the files at and below `paths`; nothing is written yet."""
    report = Report()
    hits: dict[str, Hit] = {}
    others: list[Other] = []
    for count, item in enumerate(discover(paths, settings, force_exclude=force_exclude), 1):
        progress.at("reading", count)
        if isinstance(item, Hit):
            hits[item.path] = item
        elif isinstance(item, Other):
            others.append(item)
        elif item.error:
            report.problems.append(Problem(item.path, item.reason))
        else:
            report.passed_over.append(item)
    wanted = _NATIVE if hits else _OLD_NATIVE if settings.api == "torch.amp" else None
    if wanted is not None:
        hits |= {hit.path: hit for hit in _native(others, wanted)}
    report.read = len(hits) + len(others)
    progress.at("looking for what Apex code leads to", report.read)
    context = _Context(hits, others, folders(paths))
    _migrate(report, context, settings)
    from amp_migrate.dependencies.files import naming_apex

    if report.sources or any(True for _ in naming_apex(paths, settings)):
        from amp_migrate.dependencies.notes import look

        look(report, paths, settings)
    return report


def _native(others: list[Other], wanted: re.Pattern[bytes]) -> Iterator[Hit]:
    """Yield the files of native AMP: beside Apex they get remarks, and --api torch.amp respells them."""
    for other in others:
        data = other.read()
        if wanted.search(data) and not other.ignored:
            yield Hit(other.path, data)


class _Context:
    """The files of a run: `hits`, and those that Apex or native code reaches or is reached from, without using AMP themselves.

    What only imports files that Apex code imports as well is read where a plan edits those.
    """

    def __init__(self, hits: dict[str, Hit], others: list[Other], roots: list[str]) -> None:
        self.roots = roots
        self._hits = hits
        self._others = {other.path: other for other in others if other.path not in hits}
        self._selection = self._selected(roots) if others else None
        self._paths = self._selection.needed if self._selection is not None else []
        self._changing: set[str] = set()

    def _selected(self, roots: list[str]) -> Selection | None:
        hits = self._hits
        if not any(b"apex" in hit.data for hit in hits.values()):
            return None
        from amp_migrate.modules.select import Selection

        seeds = {
            path: hit.data + _SEED
            for path, hit in hits.items()
            if b"apex" in hit.data or _NATIVE.search(hit.data)
        }
        contents: dict[str, bytes | Callable[[], bytes]] = {
            **{path: hit.data for path, hit in hits.items()},
            **seeds,
            **{path: other.read for path, other in self._others.items()},
        }
        return Selection(contents, roots, _SEED)

    def files(self) -> list[Hit]:
        """Return the files to read."""
        others = (self._others[path] for path in self._paths if path in self._others)
        found = (Hit(other.path, other.read()) for other in others if not other.ignored)
        return [*self._hits.values(), *found]

    def widened(self, paths: Collection[str]) -> bool:
        """Take in what imports some files that change, and what that imports; tell whether there is any more."""
        if self._selection is None:
            return False
        known = self._paths
        self._changing.update(paths)
        self._paths = self._selection.with_callers(self._changing)
        return len(self._paths) > len(known)


def run_text(name: str, data: bytes, settings: Settings) -> Report:
    """Migrate the bytes of one file that is not read from the disk."""
    report = Report()
    _migrate(report, _Context({name: Hit(name, data)}, [], []), settings)
    return report


def write_changes(report: Report) -> None:
    """Write the changes; where a file cannot be written, no file of its unit is.

    Raises `UnwritableSource` or `Stopped` where writing fails on the way: no file is changed then.
    """
    from amp_migrate.source.file import UnwritableSource
    from amp_migrate.source.writing import check_writable, write_all

    refused = {}
    for change in report.changes:
        try:
            check_writable(change.path, expected=change.before)
        except UnwritableSource as error:
            refused[error.path] = error.reason
    _withhold(report, refused)
    write_all({change.path: change.after for change in report.changes})
    report.written = True


def _begins(phase: Phase, files: int) -> None:
    progress.at(phase.value, files)


def _migrate(report: Report, context: _Context, settings: Settings) -> None:
    sources = list(_decoded(context.files(), report.problems))
    if not sources:
        return
    settings = with_api(settings, report, context.roots)
    report.api = settings.api
    progress.at("migrating", len(sources))
    report.only_fixes = settings.only_fixes
    report.migrates = settings.migrates
    from amp_migrate.engine import migrate
    from amp_migrate.source.file import UnwritableSource

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = migrate(sources, settings, beyond=partial(_beyond, context), begins=_begins)
    report.sources = {outcome.path: outcome.before for outcome in result.outcomes}
    report.findings = result.plan.findings()
    report.decisions = list(result.plan.decisions)
    tally = result.tally
    report.counts = Counts(tally.found, tally.migrated, tally.fixed, tally.left)
    report.units = result.units
    report.compared = result.compared
    refused = dict.fromkeys(result.unstable, "a second run would change it again")
    refused |= {o.path: o.doubted for o in result.outcomes if o.doubted is not None}
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


def _beyond(context: _Context, paths: Collection[str]) -> list[Source] | None:
    """Return all sources with those that import some files that change; None where they are read already."""
    return list(_decoded(context.files(), [])) if context.widened(paths) else None


def with_api(settings: Settings, report: Report, roots: Iterable[str]) -> Settings:
    """Settle the spelling: the new one where the project, or else this environment, has a torch that knows it.

    This environment tells nothing where some file below `roots`, as a Dockerfile, holds an older torch.
    """
    if settings.api != "auto":
        return settings
    from amp_migrate.dependencies.torch_floor import (
        declared_torch,
        installed_torch,
        lowest_versions,
    )
    from amp_migrate.dependencies.torch_limit import is_held_below

    floor = declared_torch(settings.root)
    if floor is not None:
        new = floor.version >= _NEW_SPELLING
    else:
        installed = installed_torch() or ""
        new = any(found >= _NEW_SPELLING for found in lowest_versions(f"torch=={installed}"))
        new = new and not is_held_below(_NEW_SPELLING, roots, settings)
        report.installed_torch = installed if new else ""
    return settings.updated({"api": "torch.amp" if new else "torch.cuda.amp", "respell": False})


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


def _decoded(hits: Collection[Hit], problems: list[Problem]) -> Iterator[Source]:
    """Yield the files that are text; one that is not is a problem only if it uses Apex."""
    if not hits:
        return
    from amp_migrate.source.file import Source, UnreadableSource

    for hit in hits:
        try:
            yield Source.from_bytes(hit.path, hit.data)
        except UnreadableSource as error:
            if uses_apex(hit.data):
                problems.append(Problem(error.path, error.reason))
