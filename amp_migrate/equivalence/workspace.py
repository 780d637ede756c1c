"""Copies of the user's project: one as it is, one migrated, one with only the fixes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
_FIX = re.compile(r"\bAMP2\d\d\b")


class WorkspaceError(Exception):
    """A copy cannot be made; the text says why and what to do."""


@dataclass(frozen=True)
class Trees:
    """The two programs to run.

    `fixes` are the behaviour-changing rules that took part. `fixed_before` says that `before`
    holds the same fixes; `original` is then the program as the user wrote it.
    """

    before: Path | None
    after: Path
    original: Path | None = None
    fixes: tuple[str, ...] = ()
    fixed_before: bool = False
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
    told = migrate(after, options.codemod)
    changed = tuple(changed_files(original, after))
    fixes = tuple(sorted(set(_FIX.findall(told))))
    if not fixes:
        return Trees(before=original, after=after, changed=changed)
    return _with_fixes(options, home, Trees(original, after, original, fixes, changed=changed))


def _with_fixes(options: Options, home: Path, trees: Trees) -> Trees:
    """Make the Apex program with only the fixes applied, the fair thing to compare with."""
    fixed = home / "only-fixes"
    copy(options.before or options.project, fixed, options.links)
    try:
        migrate(fixed, ("--only-fixes", *options.codemod))
    except WorkspaceError:
        named = ", ".join(trees.fixes)
        note = f"{named} changed the training on purpose, and before is without the change"
        return Trees(
            trees.before, trees.after, trees.original, trees.fixes, False, trees.changed, (note,)
        )
    return Trees(fixed, trees.after, trees.original, trees.fixes, True, trees.changed)


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


def migrate(tree: Path, arguments: tuple[str, ...]) -> str:
    """Run the codemod on `tree` and return what it reported as JSON text."""
    command = [
        *(sys.executable, "-m", "amp_migrate", str(tree)),
        *("--output-format", "json", "--exit-zero", *arguments),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise WorkspaceError(f"the codemod failed on the copy: {last}")
    return done.stdout


def changed_files(before: Path, after: Path) -> Iterator[str]:
    """Yield the Python files and notebooks of `after` that differ from `before`."""
    for path in sorted(after.rglob("*")):
        if path.suffix not in (".py", ".ipynb") or not path.is_file():
            continue
        relative = path.relative_to(after)
        old = before / relative
        if not old.is_file() or old.read_bytes() != path.read_bytes():
            yield relative.as_posix()
