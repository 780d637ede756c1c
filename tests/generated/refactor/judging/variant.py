"""Variants: a base under some refactorings, drawn by a seed and built again from its steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random

import libcst as cst

from generated.refactor.bases import base, names
from generated.refactor.project import Base, Project
from generated.refactor.refactoring import FAMILIES, catalogue

MOST = 5

Step = tuple[str, int]  # the name of a refactoring, and the seed of its random numbers


@dataclass(frozen=True)
class Variant:
    """A base in other clothes: `steps` are the refactorings that were applied, in order."""

    base: Base
    steps: tuple[Step, ...]
    project: Project

    @property
    def families(self) -> tuple[str, ...]:
        """The families of its refactorings, each once."""
        held = catalogue()
        return tuple(sorted({held[name].family for name, _ in self.steps}))


def drawn(seed: int, families: Collection[str] = FAMILIES, only: Collection[str] = ()) -> Variant:
    """Return the variant of a seed: 1 to 5 refactorings of these families (or these alone) on a base.

    A refactoring whose precondition is met nowhere is drawn again; where none fits, the variant has no steps.
    """
    rng = Random(f"variant {seed}")
    start = base(base_name(seed))
    wanted = rng.randint(1, MOST)
    by_family: dict[str, list[str]] = {}
    for r in catalogue().values():
        if (r.name in only) if only else r.family in families:
            by_family.setdefault(r.family, []).append(r.name)
    steps: list[Step] = []
    project = start.project
    for _ in range(4 * MOST):
        if len(steps) == wanted:
            break
        family = rng.choice(sorted(by_family))
        step = rng.choice(by_family[family]), rng.randrange(1_000_000)
        changed = applied(project, step)
        if changed is not None:
            steps.append(step)
            project = changed
    return Variant(start, tuple(steps), project)


def base_name(seed: int) -> str:
    """Return the name of the base of a seed."""
    return Random(f"base {seed}").choice(names())


def rebuilt(start: Base, steps: Sequence[Step]) -> Variant | None:
    """Apply steps to a base; None where one of them finds no place."""
    project = start.project
    for step in steps:
        changed = applied(project, step)
        if changed is None:
            return None
        project = changed
    return Variant(start, tuple(steps), project)


def applied(project: Project, step: Step) -> Project | None:
    """Apply one refactoring; None where it finds no place, or leaves what does not parse."""
    name, seed = step
    try:
        changed = catalogue()[name].apply(project, Random(seed))
        if changed is None or changed.files == project.files:
            return None
        for path, text in changed.files.items():
            if text != project.files.get(path):
                compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, cst.ParserSyntaxError, cst.CSTValidationError):
        return None
    return changed
