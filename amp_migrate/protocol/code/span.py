"""Where programs begin, as far as a search over them goes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from amp_migrate.project import Function

Entry = tuple[Function, bool]
"""A function where programs begin, and whether code out of reach calls it."""


class Span(NamedTuple):
    """Where some programs begin, and the files of which they may run something, None for all."""

    entries: tuple[Entry, ...]
    files: frozenset[str] | None = None

    def near(self, functions: Iterable[Function]) -> list[Function]:
        """Return those of some functions that the programs may run."""
        return [f for f in functions if self.files is None or f.module.path in self.files]
