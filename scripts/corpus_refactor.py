"""Refactor the Apex files of a checkout in place, at random, by what needs no run to be right."""

from __future__ import annotations

import ast
import io
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from corpus_run import Output, Row, measure
from pyflakes import api, reporter

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from generated.refactor.project import Project  # noqa: E402
from generated.refactor.refactoring import Refactoring, catalogue  # noqa: E402

FAMILIES = ("noise", "order", "control")
PER_FILE = 4
_TRIES = 12
_LARGEST = 60_000  # bytes of a file that is still refactored
# What changes names that other files may use, and what hides an Apex call from a scan that goes by names.
_PROJECT_WIDE = {
    "attributes neutral",
    "definitions neutral",
    "methods neutral",
    "options neutral",
    "parameters neutral",
    "every name neutral",
    "every name half neutral",
    "a flag gets a word that says something else",
    "Apex under another name",
    "a function of Apex under another name",
    "a function of Apex under a local name",
    "an import that nothing uses",
}


@dataclass(slots=True)
class Applied:
    """What was done to a checkout: refactorings by name, and those that were undone as the check failed."""

    files: int = 0
    done: Counter[str] = field(default_factory=Counter)
    undone: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Pair:
    """What came of a checkout as it is, and of a refactored copy."""

    plain: Row
    other: Row
    applied: Applied

    @property
    def rows(self) -> tuple[Row, Row]:
        """Both, in this order."""
        return self.plain, self.other


def measure_both(checkout: Path, seed: int, limit: float) -> Pair:
    """Migrate copies of a checkout, one as it is and one refactored."""
    plain = measure(checkout, Output(), limit=limit)
    with tempfile.TemporaryDirectory(prefix="corpus-") as scratch:
        copy = Path(scratch) / checkout.name
        shutil.copytree(checkout, copy, symlinks=True)
        applied = refactor(copy, seed)
        return Pair(plain, measure(copy, Output(), limit=limit), applied)


def usable() -> list[Refactoring]:
    """Return the refactorings of single files, by name."""
    held = sorted(catalogue().values(), key=lambda r: r.name)
    return [r for r in held if r.family in FAMILIES and r.name not in _PROJECT_WIDE]


def refactor(folder: Path, seed: int, steps: int = PER_FILE) -> Applied:
    """Apply some refactorings to every Python file of a folder that uses Apex; none of its code is run.

    The result compiles and names nothing that is undefined; a refactoring after which that fails is undone.
    """
    applied = Applied()
    for path in sorted(folder.rglob("*.py")):
        if path.is_symlink() or not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        source = _source(path)
        if source is None:
            continue
        changed = refactored(source, name, Random(f"{seed} {name}"), steps, applied)
        if changed != source:
            applied.files += 1
            path.write_bytes(changed.encode())
    return applied


def _source(path: Path) -> str | None:
    """Return the text of a file that uses Apex and can be refactored."""
    data = path.read_bytes()
    if b"apex" not in data or b"\r" in data or len(data) > _LARGEST:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if _whole(text) else None


def refactored(source: str, name: str, rng: Random, steps: int, applied: Applied) -> str:
    """Return the text of a file after some refactorings, each family as likely as the others."""
    choices = usable()
    count = 0
    for _ in range(_TRIES):
        if count == steps:
            break
        family = rng.choice(FAMILIES)
        chosen = rng.choice([r for r in choices if r.family == family])
        changed = _changed(source, name, chosen, rng)
        if changed is None or changed == source:
            continue
        if not _whole(changed) or _undefined(changed) - _undefined(source):
            applied.undone[chosen.name] += 1
            continue
        applied.done[chosen.name] += 1
        source = changed
        count += 1
    return source


def _changed(source: str, name: str, chosen: Refactoring, rng: Random) -> str | None:
    """Return what a refactoring makes of a file, None where it finds no place or cannot read the file."""
    try:
        found = chosen.apply(Project({name: source}, name), rng)
    except Exception:  # real code has what no program of the generator has: such a place is none
        return None
    return None if found is None or set(found.files) != {name} else found.files[name]


def _whole(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(ast.parse(text), "file", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _undefined(text: str) -> Counter[str]:
    """Return the messages of pyflakes that name what is not there, without their lines."""
    stream = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api.check(text, "file", reporter.Reporter(stream, stream))
    lines = (line.partition(" ")[2] for line in stream.getvalue().splitlines())
    return Counter(line for line in lines if "undefined" in line or "referenced before" in line)
