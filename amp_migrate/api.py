"""The library: what the command line does, as two functions that print nothing and write only when told to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from amp_migrate.report import Counts, FileChange, Problem, Report
from amp_migrate.run import run_paths, run_text, write_changes
from amp_migrate.settings import Settings, read_settings

if TYPE_CHECKING:
    from amp_migrate.plan.model import Finding

StrPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Result:
    """What a migration found and would change.

    `report` is what the outputs of the command line are made of; it may change with every version.
    """

    report: Report
    data: bytes = b""
    encoding: str = "utf-8"

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """The files that change: `path`, their bytes `before` and `after`, and the `text` after."""
        return tuple(self.report.changes)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was decided at every place, by file and place: `code`, `status`, `message`, `advice`, `span`."""
        return tuple(self.report.findings)

    @property
    def counts(self) -> Counts:
        """The tally; ``found == migrated + fixed + left``."""
        return self.report.counts

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The files that may use Apex and could not be migrated: `path` and `reason`."""
        return tuple(self.report.problems)

    @property
    def text(self) -> str:
        """The text after, of `migrate_source`; the text that was given where nothing changes."""
        changed = self.report.changes
        return (changed[0].after if changed else self.data).decode(self.encoding)

    @property
    def exit_code(self) -> int:
        """The exit code of the command line: 0 nothing is left, 1 findings need a human, 2 failures."""
        return self.report.exit(check=False, diff=False, exit_zero=False).code

    def diff(self) -> str:
        """Return the changes as one patch for ``git apply``; bytes that are no UTF-8 become surrogates."""
        from amp_migrate.output.formats.diff import patch

        parts = (patch(change.path, change.before, change.after) for change in self.changes)
        return b"".join(parts).decode("utf-8", "surrogateescape")

    def write(self) -> None:
        """Write the changes of `migrate_project`: whole units only, and no file that changed on the disk since."""
        write_changes(self.report)


def migrate_source(
    text: str | bytes, *, filename: str = "source.py", settings: Settings | None = None
) -> Result:
    """Migrate one file that is given as text, or as the bytes it has on the disk.

    The text stands alone: what it takes from other files of its project is out of sight. A `filename`
    that ends in ``.ipynb`` is a notebook. Raises UnicodeEncodeError where a declared encoding lacks a character.
    """
    if isinstance(text, str):
        encoding = _encoding(filename, text)
        data = text.encode(encoding)
    else:
        data, encoding = text, _encoding(filename, text.decode("utf-8", "replace"))
    return Result(run_text(filename, data, settings or Settings()), data, encoding)


def migrate_project(
    paths: StrPath | Iterable[StrPath],
    *,
    settings: Settings | None = None,
    force_exclude: bool = False,
) -> Result:
    """Migrate the files at and below `paths` as one project; nothing is written before `Result.write`.

    Without `settings` those of the nearest ``pyproject.toml`` hold. `force_exclude` leaves out excluded
    files even where `paths` names them. Raises FileNotFoundError for a path that does not exist, and
    `amp_migrate.settings.SettingsError` for a table that cannot be read.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    named = [os.fspath(path) for path in given]
    for name in named:
        if not os.path.lexists(name):
            raise FileNotFoundError(f"{name} does not exist")
    if settings is None:
        settings = read_settings(common_folder(named))
    return Result(run_paths(named, settings, force_exclude=force_exclude))


def common_folder(paths: Iterable[str]) -> Path:
    """Return the folder that all `paths` lie in, the working directory for none; settings are looked for there."""
    resolved = [Path(path).resolve() for path in paths]
    if not resolved:
        return Path.cwd()
    common = Path(os.path.commonpath(resolved))
    return common if common.is_dir() else common.parent


def _encoding(filename: str, text: str) -> str:
    """Return the encoding that a Python file declares for itself; UTF-8 for all others."""
    if filename.endswith(".ipynb"):
        return "utf-8"
    import tokenize

    lines = iter([line.encode() + b"\n" for line in text[:4096].splitlines()[:2]])
    try:
        found, _ = tokenize.detect_encoding(lambda: next(lines, b""))
    except SyntaxError:
        return "utf-8"
    return "utf-8" if found == "utf-8-sig" else found
