"""Defines a closure first in its function, above all that it reads."""

from __future__ import annotations

from random import Random

from generated.refactor.code.scopes import places
from generated.refactor.functions.nested import closed
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


def _apply(project: Project, rng: Random) -> Project | None:
    """Draw a run in a function; the closure that it becomes stands where the function begins."""
    for place in places(project, rng, lambda block: block.function is not None):
        changed = closed(project, place, rng, first=True)
        if changed is not None:
            return changed
    return None


REFACTORINGS = (Refactoring("a closure stands above what it reads", "order", _apply),)
