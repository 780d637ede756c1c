"""What the tests of the refactorings share: small programs, and what must hold for every refactored base."""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from random import Random

from generated.refactor.bases import base, names
from generated.refactor.judging.migrated import messages
from generated.refactor.project import Project
from generated.refactor.refactoring import catalogue


def program(text: str, **others: str) -> Project:
    """Return a project whose script is this text; others are modules beside it."""
    files = {f"{name}.py": textwrap.dedent(other).lstrip("\n") for name, other in others.items()}
    return Project({"main.py": textwrap.dedent(text).lstrip("\n"), **files}, "main.py")


def seeds(name: str, project: Project, count: int = 60) -> list[Project]:
    """Return what a refactoring makes of a project, with some random numbers."""
    found = [catalogue()[name].apply(project, Random(seed)) for seed in range(count)]
    return [f for f in found if f is not None]


def reaches(name: str, project: Project, after: str, path: str = "main.py") -> bool:
    """Tell whether a refactoring can make this text of a file."""
    wanted, apply = textwrap.dedent(after).lstrip("\n"), catalogue()[name].apply
    found = (apply(project, Random(seed)) for seed in range(600))
    return any(f is not None and f.files.get(path) == wanted for f in found)


def said(project: Project) -> Counter[str]:
    """Return what pyflakes says of a project, without lines."""
    found: Counter[str] = Counter()
    for path, text in project.files.items():
        found.update(messages(path, text.encode()))
    return found


def sound(family: str, seed: int, count: int) -> list[str]:
    """Apply the refactorings of a family to random bases; return what is wrong with the results."""
    rng, wrong = Random(seed), []
    held = [r for r in catalogue().values() if r.family == family]
    for k in range(count):
        start = base(rng.choice(names())).project
        refactoring = held[k % len(held)]
        changed = refactoring.apply(start, Random(rng.randrange(1_000_000)))
        if changed is None:
            continue
        try:
            for path, text in changed.files.items():
                if text != start.files.get(path):
                    compile(ast.parse(text), path, "exec")
        except SyntaxError as error:
            wrong.append(f"{refactoring.name}: {error}")
            continue
        new = said(changed) - said(start)
        wrong += [f"{refactoring.name}: {message}" for message in new]
    return wrong
