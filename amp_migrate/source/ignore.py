"""Which files a walk leaves out: default folders, --exclude patterns and .gitignore files."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from amp_migrate.source.tracked import Repository

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

DEFAULT_EXCLUDES = frozenset(
    (
        *(".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox"),
        *(".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", "__pycache__"),
        *("__pypackages__", "_build", "buck-out", "build", "dist", "node_modules"),
        *("site-packages", "venv"),
    )
)


class Patterns:
    """Lines of a .gitignore, relative to an absolute folder; compiled when first asked."""

    def __init__(self, folder: str, lines: tuple[str, ...]) -> None:
        self.folder = folder
        self.lines = lines

    @cached_property
    def _spec(self) -> GitIgnoreSpec:
        from pathspec import GitIgnoreSpec

        try:
            return GitIgnoreSpec.from_lines(self.lines)
        except ValueError:
            return GitIgnoreSpec.from_lines(line for line in self.lines if _is_pattern(line))

    def verdict(self, path: str, *, folder: bool) -> bool | None:
        """Tell whether the absolute `path` is ignored; None where no line speaks of it."""
        top = os.path.join(self.folder, "")
        if not path.startswith(top):
            return None
        return self._spec.check_file(path[len(top) :] + ("/" if folder else "")).include


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


class IgnoreRules(NamedTuple):
    """The rules that hold in one folder; `git` has the outermost .gitignore first.

    Paths are absolute. What `repository` tracks is not ignored by git; inside a `closed` folder, which it
    ignores, nothing else counts.
    """

    names: frozenset[str]
    patterns: Patterns | None
    git: tuple[Patterns, ...] = ()
    repository: Repository | None = None
    closed: bool = False

    def above(self, folder: str) -> IgnoreRules:
        """Return these rules with those of the git repository around `folder`, itself left out."""
        between = []
        for place in Path(folder).parents:
            between.append(place)
            if (place / ".git").exists():
                break
        else:
            return self
        rules = self
        for place in reversed(between):
            rules = rules.entered(str(place), os.listdir(place))
        return rules

    def entered(self, folder: str, names: list[str]) -> IgnoreRules:
        """Return the rules inside `folder`, which holds `names`; a repository starts afresh."""
        git = () if ".git" in names else self.git
        files = [".git/info/exclude"] if ".git" in names else []
        files += [".gitignore"] if ".gitignore" in names else []
        for name in files:
            lines = _lines(os.path.join(folder, name))
            git += (Patterns(folder, lines),) if lines else ()
        if ".git" in names:
            return self._replace(git=git, repository=Repository(folder), closed=False)
        return self if git == self.git else self._replace(git=git)

    def skip_folder(self, path: str) -> bool:
        """Tell whether a walk stays out of a folder."""
        return os.path.basename(path) in self.names or self._ignored(path, folder=True)

    def inside(self, path: str) -> IgnoreRules:
        """Return the rules below a folder that is not skipped."""
        return self._replace(closed=True) if self._verdict(path, folder=True) else self

    def skip_file(self, path: str) -> bool:
        """Tell whether a walk passes over a file."""
        return self._ignored(path, folder=False)

    def covers(self, path: str, top: str) -> bool:
        """Tell whether a walk from the folder `top` would not reach the file `path`."""
        folders = [str(up) for up in Path(path).parents if up.is_relative_to(top)][:-1]
        return self.skip_file(path) or any(self.skip_folder(up) for up in folders)

    def _ignored(self, path: str, *, folder: bool) -> bool:
        if self.patterns is not None and self.patterns.verdict(path, folder=folder):
            return True
        if not self.closed and not self._verdict(path, folder=folder):
            return False
        return self.repository is None or not self.repository.tracks(path)

    def _verdict(self, path: str, *, folder: bool) -> bool:
        for patterns in reversed(self.git):
            verdict = patterns.verdict(path, folder=folder)
            if verdict is not None:
                return verdict
        return False


def listed(folder: str, rules: IgnoreRules) -> tuple[list[os.DirEntry[str]], IgnoreRules]:
    """Return the entries of a folder by name and the rules that hold in it; none of a virtual environment.

    Raises `OSError`.
    """
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    names = [entry.name for entry in entries]
    if "pyvenv.cfg" in names:
        return [], rules
    return entries, rules.entered(folder, names)


def _lines(file: str) -> tuple[str, ...]:
    try:
        text = Path(file).read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return ()
    return tuple(line for line in text.splitlines() if line.strip() and not line.startswith("#"))
