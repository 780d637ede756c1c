"""The fixture cases as data: their programs before and after, options and expected findings."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from amp_migrate.engine import migrate
from amp_migrate.outcome import Result
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent / "fixtures"
_ELSEWHERE = ("headline", "enable")
FIXES_ALONE = Settings(only_fixes=True, api="torch.cuda.amp")
USUAL_OVERFLOW = 3
"""The backward whose gradients overflow, unless a fixture says otherwise."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A finding a case must have: `where` is ``file:line``, `code` may be a pattern as ``AMP9*``."""

    where: str
    code: str
    status: str


@dataclass(frozen=True, slots=True)
class Case:
    """One fixture: a program, or a project of several files, and what the codemod makes of it.

    `after` holds every file, also those that stay; `corrected` is the Apex program without its
    known mistakes, where it has some; `library` is what it imports from elsewhere; `run` names the script that trains, `modes` how it may be
    compared ("logic": casts off, dynamic scale; "casts": as the program says), `overflow` is the
    backward at which "logic" makes a gradient infinite (0: never).
    """

    name: str
    description: str
    before: dict[str, str]
    after: dict[str, str]
    corrected: dict[str, str]
    library: dict[str, str]
    args: tuple[str, ...]
    findings: tuple[Expected, ...]
    run: str
    run_args: tuple[str, ...]
    more_args: tuple[tuple[str, ...], ...]
    modes: tuple[str, ...]
    overflow: int

    @property
    def changed(self) -> bool:
        """Whether the codemod has something to do."""
        return self.before != self.after

    @property
    def reference(self) -> dict[str, str]:
        """The Apex program that the migrated one must equal step by step."""
        return self.corrected or self.before


@cache
def cases() -> tuple[Case, ...]:
    """Return all cases, by name."""
    folders = sorted(path.parent for path in ROOT.glob("*/*/case.toml"))
    return tuple(_case(folder) for folder in folders if folder.parent.name not in _ELSEWHERE)


@cache
def enabled() -> tuple[Case, ...]:
    """Return the cases of trainings in FP32, by name."""
    return tuple(_case(path.parent) for path in sorted(ROOT.glob("enable/*/case.toml")))


def _case(folder: Path) -> Case:
    facts = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
    before = _files(folder, "before")
    after = before | _files(folder, "after")
    run = facts.get("run", "")
    return Case(
        name=f"{folder.parent.name}/{folder.name}",
        description=facts["description"],
        before=before,
        after=after,
        corrected=_files(folder, "corrected"),
        library=_files(ROOT / facts.get("library", folder), "library"),
        args=tuple(facts.get("args", ())),
        findings=tuple(Expected(*finding) for finding in facts.get("findings", ())),
        run=next(iter(before)) if run is True else run,
        run_args=tuple(facts.get("run_args", ())),
        more_args=tuple(map(tuple, facts.get("more_args", ()))),
        modes=tuple(facts.get("modes", ("logic", "casts"))) if run else (),
        overflow=facts.get("overflow", USUAL_OVERFLOW),
    )


def with_library(case: Case) -> Case:
    """Return a case whose programs can run: beside the libraries that they import."""
    sides = {"before": case.before, "after": case.after, "corrected": case.corrected}
    return replace(
        case, **{k: case.library | files if files else files for k, files in sides.items()}
    )


def only_fixes(case: Case) -> dict[str, str]:
    """Return the Apex program of a case with its mistakes corrected, as ``--only-fixes`` writes it."""
    own = {name: text for name, text in case.before.items() if name not in case.library}
    return case.before | {
        o.path: o.before.text if o.after is None else o.after
        for o in fixed_alone(tuple(own.items())).outcomes
    }


@lru_cache(maxsize=4)
def fixed_alone(texts: tuple[tuple[str, str], ...]) -> Result:
    """Return what ``--only-fixes`` says about texts; the tests of a fixture ask for it one after the other."""
    sources = [Source.from_bytes(name, text.encode()) for name, text in texts]
    return migrate(sources, FIXES_ALONE)


def _files(folder: Path, side: str) -> dict[str, str]:
    """Read one side of a case; a single file is called before.py on every side."""
    single = folder / f"{side}.py"
    if single.exists():
        return {"before.py": _text(single)}
    tree = folder / side
    names = sorted(path for path in tree.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(tree).as_posix(): _text(path) for path in names}


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8")
