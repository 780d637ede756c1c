"""Copies of the user's project: one as it is, one migrated, one with only the fixes."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import amp_migrate
from amp_migrate.equivalence.options import Options

IGNORED = (
    ".git",
    ".hg",
    ".svn",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".tox",
)
LARGEST_COPY = 2 * 2**30


class WorkspaceError(Exception):
    """A copy cannot be made; the text says why and what to do."""


class NothingMigratedError(WorkspaceError):
    """The migrated copy is the original."""


class Migration(NamedTuple):
    """The behaviour-changing rules the codemod applied, the sites it left, and files it could not read."""

    fixes: tuple[str, ...]
    left: tuple[str, ...]
    unread: tuple[str, ...] = ()

    def notes(self) -> tuple[str, ...]:
        """Return what is not migrated, in words."""
        stays = (_left(self.left),) if self.left else ()
        return (*stays, *(f"not migrated: {problem}" for problem in self.unread))


@dataclass(frozen=True)
class Trees:
    """The two programs to run.

    `fixes` are the behaviour-changing rules that took part; `fixes_differ` says that only `after`
    holds them. `full` is the migration with its fixes where `after` is one without.
    """

    before: Path | None
    after: Path
    full: Path | None = None
    fixes: tuple[str, ...] = ()
    fixes_differ: bool = False
    changed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def prepare(options: Options, home: Path) -> Trees:
    """Return the trees that `options` ask for, below `home` where they have to be made.

    Raises WorkspaceError where the project is too large to copy or the codemod fails.
    """
    if options.imported is not None:
        return Trees(before=None, after=options.after or options.project)
    if options.before is not None and options.after is not None:
        return Trees(before=options.before, after=options.after)
    original = options.before or options.project
    after = home / "migrated"
    copy(original, after, options.links)
    arguments = ("enable", *options.codemod) if options.enables else options.codemod
    migration = migrate(after, arguments)
    changed = tuple(changed_files(original, after))
    if not changed:
        why = "".join(f": {note}" for note in migration.notes()[:1])
        raise NothingMigratedError(f"the codemod changes nothing here{why}")
    notes = migration.notes()
    trees = Trees(original, after, fixes=migration.fixes, changed=changed, notes=notes)
    with_fixes = bool(migration.fixes) and not options.enables
    return _with_fixes(options, home, trees) if with_fixes else trees


def _with_fixes(options: Options, home: Path, trees: Trees) -> Trees:
    """Compare like with like: the fixes on both sides, or else on neither."""
    source = options.before or options.project
    named = ", ".join(trees.fixes)
    fixed = home / "only-fixes"
    copy(source, fixed, options.links)
    if set(migrate(fixed, ("--only-fixes", *options.codemod)).fixes) >= set(trees.fixes):
        note = f"before is the Apex program with {named} applied"
        return dataclasses.replace(trees, before=fixed, notes=(*trees.notes, note))
    bare = home / "without-fixes"
    copy(source, bare, options.links)
    if migrate(bare, ("--no-fixes", *options.codemod)).left:
        note = f"{named} changed the training on purpose, and before is without the change"
        return dataclasses.replace(trees, notes=(*trees.notes, note), fixes_differ=True)
    note = f"{named} changed the training on purpose, so the programs are compared without it"
    return dataclasses.replace(trees, after=bare, full=trees.after, notes=(*trees.notes, note))


def copy(source: Path, target: Path, links: tuple[str, ...]) -> None:
    """Copy a project without caches, environments and history; `links` stay links to the original."""
    linked = {(source / link).resolve() for link in links}
    size = sum(path.stat().st_size for path in _files(source, linked))
    if size > LARGEST_COPY:
        raise WorkspaceError(
            f"{source} holds {size / 2**30:.1f} GiB; name its data folders with --link, "
            "so that they are not copied"
        )

    def ignore(folder: str, names: list[str]) -> set[str]:
        held = {name for name in names if name in IGNORED}
        return held | {name for name in names if (Path(folder) / name).resolve() in linked}

    shutil.copytree(source, target, ignore=ignore, symlinks=True)
    for link in links:
        place = target / link
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to((source / link).resolve())


def _files(folder: Path, linked: set[Path]) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in IGNORED or path.is_symlink() or path.resolve() in linked:
            continue
        if path.is_dir():
            yield from _files(path, linked)
        elif path.is_file():
            yield path


def migrate(tree: Path, arguments: tuple[str, ...]) -> Migration:
    """Run the codemod on `tree` and return what it reports. Raises WorkspaceError where it reports nothing."""
    named = arguments[:1] if arguments[:1] == ("enable",) else ()
    command = [
        *(sys.executable, "-m", "amp_migrate", *named, str(tree)),
        *("--output-format", "json", "--exit-zero", *arguments[len(named) :]),
    ]
    here = str(Path(amp_migrate.__file__).parent.parent)
    paths = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise WorkspaceError(f"the codemod failed on the copy: {last}") from error
    fixed = {item["code"] for item in report["findings"] if item["status"] == "fixed"}
    fixes = tuple(sorted(code for code in fixed if code.startswith("AMP2")))
    unread = (f"{_below(item['path'], tree)}: {item['reason']}" for item in report["problems"])
    left = (
        f"{_below(item['path'], tree)}:{item['location']['row']}"
        for item in report["findings"]
        if item["status"] == "left"
    )
    return Migration(fixes, tuple(left), tuple(unread))


def _left(places: tuple[str, ...]) -> str:
    """Say how many uses of Apex stay, and where the first of them are."""
    what = (
        "1 use of Apex stays as it is"
        if len(places) == 1
        else f"{len(places)} uses of Apex stay as they are"
    )
    return f"{what}: {', '.join(places[:3])}{', ...' if len(places) > 3 else ''}"


def _below(path: str, tree: Path) -> str:
    whole = Path.cwd() / path
    return whole.relative_to(tree).as_posix() if whole.is_relative_to(tree) else path


def changed_files(before: Path, after: Path) -> Iterator[str]:
    """Yield the Python files and notebooks of `after` that differ from `before`."""
    for path in sorted(after.rglob("*")):
        if path.suffix not in (".py", ".ipynb") or not path.is_file():
            continue
        relative = path.relative_to(after)
        old = before / relative
        if not old.is_file() or old.read_bytes() != path.read_bytes():
            yield relative.as_posix()
