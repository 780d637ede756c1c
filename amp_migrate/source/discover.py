"""Find the files that may use Apex: a walk, ignore rules, and a look at the bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from amp_migrate.settings import Settings, SettingsError
from amp_migrate.source.ignore import DEFAULT_EXCLUDES, IgnoreRules, Patterns, listed
from amp_migrate.source.tracked import GitError, Repository, repository
from amp_migrate.words import os_reason

SUFFIXES = (".py", ".pyw", ".ipynb")
LARGEST_SCRIPT = 5_000_000
LARGEST_NOTEBOOK = 50_000_000
_APEX = rb"\bfrom[ \t]+apex\b|\bimport[ \t][^\n#]*\bapex\b|\bapex\.[a-z_]|[\"']apex[\"'.]"


class Hit(NamedTuple):
    """A file that looks like Apex code; `path` as in `shown`."""

    path: str
    data: bytes


class Other(NamedTuple):
    """A file that does not use Apex itself; one that does may lead to it."""

    absolute: str
    rules: IgnoreRules

    @property
    def path(self) -> str:
        """Its name as in `shown`."""
        return shown(self.absolute)

    @property
    def ignored(self) -> bool:
        """Whether the ignore rules leave it out."""
        return self.rules.skip_file(self.absolute)

    def read(self) -> bytes:
        """Return the bytes of the file; none where it cannot be read any more."""
        try:
            with open(self.absolute, "rb") as file:
                return file.read()
        except OSError:
            return b""


class Skipped(NamedTuple):
    """A file or folder that was not read, and why; an `error` may hide Apex code."""

    path: str
    reason: str
    error: bool


def uses_apex(data: bytes) -> bool:
    """Tell whether bytes look like code that uses Apex, or its `amp` passed on by other code."""
    return b"scale_loss" in data or (b"apex" in data and re.search(_APEX, data) is not None)


def discover(
    paths: Iterable[str], settings: Settings, *, force_exclude: bool = False
) -> Iterator[Hit | Other | Skipped]:
    """Yield the files at and below `paths`, each once.

    The order is that of sorted names. Ignore rules do not hold for a file that is named itself,
    unless `force_exclude`; the default and --exclude ones hold then. With the setting `tracked` only files
    that git tracks are found.
    """
    own = (*(settings.exclude or ()), *settings.extend_exclude)
    root = os.path.abspath(settings.root)
    names = DEFAULT_EXCLUDES if settings.exclude is None else frozenset[str]()
    rules = IgnoreRules(names, Patterns(root, own) if own else None)
    seen: set[str] = set()
    tracked = _Tracked() if settings.tracked else None
    for path in sorted({os.path.abspath(path) for path in paths}):
        if os.path.isdir(path):
            found = _walk(path, rules.above(path), os.path.realpath(path))
        elif force_exclude and rules.covers(path, root):
            continue
        else:
            found = _named(path)
        for item in found:
            if tracked is not None and not tracked.holds(item, path):
                continue
            real = item.absolute if isinstance(item, Other) else os.path.realpath(item.path)
            if real not in seen:
                seen.add(real)
                yield item


class _Tracked:
    """The files of the git repositories that the paths of a run lie in."""

    def __init__(self) -> None:
        self._known: dict[str, frozenset[str]] = {}

    def holds(self, item: Hit | Other | Skipped, start: str) -> bool:
        """Tell whether git tracks a file in the repository of the path where the search started."""
        if start not in self._known:
            root = repository(Path(start))
            if root is None:
                raise SettingsError(f"--tracked needs a git repository, and {start} is in none")
            try:
                self._known[start] = Repository(str(root)).files
            except GitError as error:
                raise SettingsError(f"--tracked cannot be followed: {error}") from error
        path = item.absolute if isinstance(item, Other) else os.path.abspath(item.path)
        return path in self._known[start]


def folders(paths: Iterable[str]) -> list[str]:
    """Return those of `paths` that are folders, as `shown` names files below them."""
    here = os.getcwd()
    named = (os.path.abspath(path) for path in paths if os.path.isdir(path))
    return ["." if path == here else shown(path) for path in named]


def shown(path: str) -> str:
    """Return `path` as reports and patches name it: from the working directory, or absolute."""
    path = os.path.abspath(path)
    here = os.path.join(os.getcwd(), "")
    return path[len(here) :] if path.startswith(here) else path


def _walk(folder: str, rules: IgnoreRules, top: str) -> Iterator[Hit | Other | Skipped]:
    """Walk a folder, its files first; links to folders are not followed."""
    try:
        entries, rules = listed(folder, rules)
    except OSError as error:
        yield Skipped(shown(folder), f"cannot be listed: {os_reason(error)}", error=True)
        return
    for entry in entries:
        if entry.name.endswith(SUFFIXES) and entry.is_file() and not _inner_link(entry, top):
            item = _look(entry.path)
            if item is None:
                yield Other(entry.path, rules)
            elif not rules.skip_file(entry.path):
                yield item
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and not rules.skip_folder(entry.path):
            yield from _walk(entry.path, rules.inside(entry.path), top)


def _inner_link(entry: os.DirEntry[str], top: str) -> bool:
    """Tell whether a link points at a file that the walk from `top` meets anyway."""
    return entry.is_symlink() and os.path.realpath(entry.path).startswith(os.path.join(top, ""))


def _named(path: str) -> Iterator[Hit | Other | Skipped]:
    item = _look(path)
    if isinstance(item, Hit) and not (path.endswith(SUFFIXES) or _has_shebang(item.data)):
        yield Skipped(shown(path), "is not a .py or .ipynb file", error=False)
    elif item is not None:
        yield item
    elif path.endswith(SUFFIXES):
        yield Other(path, IgnoreRules(frozenset(), None))


def _has_shebang(data: bytes) -> bool:
    return data.startswith(b"#!") and b"python" in data.split(b"\n", 1)[0]


def _look(path: str) -> Hit | Skipped | None:
    """Return the file if it uses Apex."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        return Skipped(shown(path), f"cannot be read: {os_reason(error)}", error=True)
    if not uses_apex(data):
        return None
    largest = LARGEST_NOTEBOOK if path.endswith(".ipynb") else LARGEST_SCRIPT
    if len(data) <= largest:
        return Hit(shown(path), data)
    return Skipped(shown(path), f"uses Apex but is larger than {largest // 10**6} MB", error=True)
