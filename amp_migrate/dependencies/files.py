"""The files of a project that may ask for Apex, and are no code."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import PurePath

from amp_migrate.settings import Settings
from amp_migrate.source.discover import shown
from amp_migrate.source.ignore import DEFAULT_EXCLUDES, IgnoreRules, Patterns, listed

REQUIREMENTS = (
    "*requirements*.txt",
    "*requirements*.in",
    "requirements/*.txt",
    "requirements/*.in",
)
ENVIRONMENTS = ("environment*.yml", "environment*.yaml", "conda*.yml", "conda*.yaml")
BUILDS = ("setup.py", "setup.cfg", "pyproject.toml", "pipfile")
IMAGES = ("dockerfile*", "*.dockerfile", "*.sh")
NOTEBOOKS = ("*.ipynb",)
_ALL = (*REQUIREMENTS, *ENVIRONMENTS, *BUILDS, *IMAGES, *NOTEBOOKS)
_LARGEST = 5_000_000


def is_one(path: str, patterns: Iterable[str]) -> bool:
    """Tell whether a file has one of some names, which may name its folder too."""
    parts = PurePath(path.lower()).parts
    return any(
        fnmatchcase("/".join(parts[-1 - pattern.count("/") :]), pattern) for pattern in patterns
    )


def naming_apex(
    paths: Iterable[str], settings: Settings, more: tuple[str, ...] = ()
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of every such file below the folders of `paths` that names Apex, and of those with names in `more`."""
    return ((name, data) for name, data in every(paths, settings, more) if b"apex" in data.lower())


def every(
    paths: Iterable[str], settings: Settings, more: tuple[str, ...] = ()
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of every such file below the folders of `paths`, and of those with names in `more`."""
    own = (*(settings.exclude or ()), *settings.extend_exclude)
    names = DEFAULT_EXCLUDES if settings.exclude is None else frozenset[str]()
    patterns = Patterns(os.path.abspath(settings.root), own) if own else None
    rules = IgnoreRules(names, patterns)
    seen: set[str] = set()
    for path in sorted({os.path.abspath(path) for path in paths}):
        for file in _below(path, rules.above(path), (*_ALL, *more)) if os.path.isdir(path) else ():
            if file not in seen:
                seen.add(file)
                yield shown(file), _read(file)


def _read(file: str) -> bytes:
    """Return the bytes of a file; none where it cannot be read or is too large to be written by hand."""
    try:
        with open(file, "rb") as stream:
            data = stream.read(_LARGEST + 1)
    except OSError:
        return b""
    return data if len(data) <= _LARGEST else b""


def _below(folder: str, rules: IgnoreRules, names: tuple[str, ...]) -> Iterator[str]:
    try:
        entries, rules = listed(folder, rules)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if not rules.skip_folder(entry.path):
                yield from _below(entry.path, rules.inside(entry.path), names)
        elif is_one(entry.path, names) and entry.is_file() and not rules.skip_file(entry.path):
            yield entry.path
