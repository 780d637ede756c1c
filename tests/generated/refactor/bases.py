"""The trainings that variants start from: every runnable fixture, and programs of the generator."""

from __future__ import annotations

from functools import cache, lru_cache

from fixture_support import Case, cases, with_library

from generated.choices.features import draw
from generated.refactor.project import Base, Project
from generated.written.program import build

GENERATED = 400


@cache
def names() -> tuple[str, ...]:
    """Return the names of all bases."""
    fixtures = [case.name for case in cases() if _usable(case)]
    return (*fixtures, *(f"generated/{seed}" for seed in range(GENERATED)))


def _usable(case: Case) -> bool:
    return bool(case.run) and case.changed and not case.args


@lru_cache(maxsize=1024)
def base(name: str) -> Base:
    """Return a base by its name."""
    group, _, rest = name.partition("/")
    if group == "generated":
        return _generated(name, int(rest))
    case = next(case for case in cases() if case.name == name)
    own = {path: text for path, text in case.before.items() if path.endswith(".py")}
    beside = with_library(case).before.items() - own.items()
    return Base(
        name,
        Project(own, case.run),
        {path: text.encode() for path, text in beside},
        (case.run_args, *case.more_args),
        case.modes,
        case.overflow,
    )


def _generated(name: str, seed: int) -> Base:
    program = build({**draw(seed), "format": "plain"})
    files = {path: data.decode("utf-8-sig", "replace") for path, data in program.files.items()}
    texts = {path: text.replace("\r\n", "\n") for path, text in files.items()}
    modes = ("logic", "casts") if program.casts else ("logic",)
    return Base(name, Project(texts, program.entry), {}, program.runs, modes, program.overflow)
