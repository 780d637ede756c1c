"""A training project as text, and the trainings that refactored variants start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import libcst as cst


@dataclass(frozen=True)
class Project:
    """Python files by relative path, and the script that trains. Refactorings return new projects.

    `more` are other scripts with their arguments, which have to do the same before and after a migration;
    what is left in the files `beside` is no fault of one: they are scripts that nothing can migrate.
    """

    files: Mapping[str, str]
    entry: str
    more: tuple[tuple[str, tuple[str, ...]], ...] = ()
    beside: tuple[str, ...] = ()

    def module(self, path: str) -> cst.Module:
        """Return the syntax tree of a file."""
        return _parsed(self.files[path])

    def changed(self, path: str, to: cst.Module | str) -> Project:
        """Return the project with another text in one file, which may be new."""
        text = to if isinstance(to, str) else to.code
        return replace(self, files={**self.files, path: text})

    @property
    def text(self) -> str:
        """All files in one string, to look for names."""
        return "\n".join(self.files.values())

    def data(self) -> dict[str, bytes]:
        """Return the files as bytes."""
        return {name: text.encode() for name, text in self.files.items()}


@lru_cache(maxsize=64)
def _parsed(text: str) -> cst.Module:
    return cst.parse_module(text)


@dataclass(frozen=True)
class Base:
    """A training that the codemod is known to migrate right.

    `library` are files beside the project that only take part when it runs; `argvs` are the arguments
    of its runs, `modes` how it may be compared, `overflow` is the backward whose gradients become infinite.
    """

    name: str
    project: Project
    library: Mapping[str, bytes]
    argvs: tuple[tuple[str, ...], ...]
    modes: tuple[str, ...]
    overflow: int
