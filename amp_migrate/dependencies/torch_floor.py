"""Which torch a project runs on: what its own files say, read and never run, or what is installed here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FILES = (
    "pyproject.toml", "setup.cfg", "setup.py", "requirements*.txt", "requirements/*.txt", "environment*.yml",
    "environment*.yaml",
)  # fmt: skip
_VERSION = r"(?:[<>=!~^]=?=?\s*)?\d[\w.*+!]*"
DECLARED = re.compile(
    r"(?<![\w.\-/])(?:py)?torch\b(?:[ \t]*\[[\w,\s-]*\])?[ \t]*"
    r"(?:"
    rf"\(?(?P<listed>[<>=!~]=?=?[ \t]*\d[\w.*+!]*(?:[ \t]*,[ \t]*{_VERSION})*)"
    r"|=[ \t]*(?:\{[^}\n]*\bversion[ \t]*=[ \t]*)?[\"'](?P<keyed>[^\"'\n]+)[\"']"
    r")"
)
_LOWER_BOUND = re.compile(r"\s*(?:===?|[~>]=|[>^~=])?\s*(\d+)(?:\.(\d+))?")
_COMMENT = re.compile(r"(?:^|\s)#.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TorchFloor:
    """A declared lowest version (major, minor), and the file that declares it."""

    version: tuple[int, int]
    file: Path


def declared_torch(folder: Path) -> TorchFloor | None:
    """Return the lowest torch declared in `folder`, or in the nearest folder above that declares one.

    The search ends at the root of the git repository; outside of one, at `folder`.
    """
    for place in _project_folders(folder):
        found = [
            TorchFloor(version, file)
            for pattern in _FILES
            for file in sorted(place.glob(pattern))
            for version in lowest_versions(_text(file))
        ]
        if found:
            return min(found, key=lambda floor: floor.version)
    return None


def installed_torch() -> str | None:
    """Return the version of the torch in the environment of this program, which is asked for and not imported."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("torch")
    except PackageNotFoundError:
        return None


def _project_folders(folder: Path) -> list[Path]:
    places = [folder, *folder.parents]
    for count, place in enumerate(places, 1):
        if (place / ".git").exists():
            return places[:count]
    return places[:1]


def lowest_versions(text: str) -> list[tuple[int, int]]:
    """Return the lowest version that each requirement of torch in `text` admits, where it says one."""
    floors = []
    for match in DECLARED.finditer(_COMMENT.sub("", text)):
        bounds = map(_LOWER_BOUND.match, (match["listed"] or match["keyed"]).split(","))
        lower = [(int(bound[1]), int(bound[2] or 0)) for bound in bounds if bound]
        if lower:
            floors.append(max(lower))
    return floors


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
