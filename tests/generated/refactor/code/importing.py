"""The modules of a project by their dotted names, and what a file imports from them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from generated.refactor.project import Project


def dotted(path: str) -> str:
    """Return the dotted name of a file, as seen from the root of the project."""
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package(path: str) -> str:
    """Return the dotted name of the package that a file stands in, empty at the root."""
    return ".".join(PurePosixPath(path).parts[:-1])


def own_modules(project: Project) -> dict[str, str]:
    """Return the files of a project by dotted name; scripts also see those beside the entry."""
    return _modules(frozenset(project.files), project.entry)


@lru_cache(maxsize=64)
def _modules(files: frozenset[str], entry: str) -> dict[str, str]:
    beside = package(entry)
    found: dict[str, str] = {}
    for path in sorted(files):
        name = dotted(path)
        found[name] = path
        if beside and name.startswith(f"{beside}."):
            found.setdefault(name.removeprefix(f"{beside}."), path)
    return found


@dataclass(frozen=True)
class Import:
    """One name of an import statement: `path` is the file of the project it reads, if it is one.

    `item` is what is taken out of that file: a name, "*", or empty for the module itself.
    """

    node: ast.Import | ast.ImportFrom
    alias: ast.alias
    path: str | None
    item: str

    @property
    def bound(self) -> str:
        """The name it binds."""
        return self.alias.asname or self.alias.name.partition(".")[0]


def imports(project: Project, path: str, tree: ast.AST) -> tuple[Import, ...]:
    """Return every name that a file, or a part of it, imports."""
    return _imports(frozenset(project.files), project.entry, path, tree)


@lru_cache(maxsize=512)
def _imports(files: frozenset[str], entry: str, path: str, tree: ast.AST) -> tuple[Import, ...]:
    known = _modules(files, entry)
    found: list[Import] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [Import(node, alias, known.get(alias.name), "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = absolute(node, path)
            for alias in node.names:
                inner = known.get(f"{source}.{alias.name}".strip("."))
                if inner and inner != path:
                    found.append(Import(node, alias, inner, ""))
                else:
                    found.append(
                        Import(node, alias, known.get(source) if source else None, alias.name)
                    )
    return tuple(found)


def absolute(node: ast.ImportFrom, path: str) -> str:
    """Return the dotted name of the module that a statement imports from."""
    module = node.module or ""
    if not node.level:
        return module
    parts = PurePosixPath(path).parts[: -node.level]
    return ".".join([*parts, *([module] if module else [])])
