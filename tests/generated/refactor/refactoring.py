"""What a refactoring is, and the catalogue of all of them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

from generated.refactor.project import Project

FAMILIES = ("functions", "order", "control", "places", "classes", "files", "noise")


@dataclass(frozen=True)
class Refactoring:
    """A change of a program that leaves what it computes as it is.

    `apply` draws a place by its random numbers and returns the changed project, or None where its
    precondition is met nowhere.
    """

    name: str
    family: str
    apply: Callable[[Project, Random], Project | None]


@cache
def catalogue() -> dict[str, Refactoring]:
    """Return every refactoring by name: each module of a family's folder holds some in `REFACTORINGS`."""
    found: dict[str, Refactoring] = {}
    for family in FAMILIES:
        package = importlib.import_module(f"generated.refactor.{family}")
        for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
            held = importlib.import_module(f"{package.__name__}.{module}")
            for refactoring in getattr(held, "REFACTORINGS", ()):
                assert refactoring.family == family and refactoring.name not in found
                found[refactoring.name] = refactoring
    return found
