"""Which files belong to one program: those that imports or calls connect, at any distance."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from amp_migrate.facts.closure import closure
from amp_migrate.facts.imports import last_name
from amp_migrate.project.layout import Folder
from amp_migrate.project.lookup import Lookup, Meaning
from amp_migrate.project.model import Class, Function, Module

if TYPE_CHECKING:
    from amp_migrate.project.project import Project

_IMPORTERS = ("import_module", "__import__")


def connected(project: Project) -> dict[str, int]:
    """Return the number of the group that each file belongs to, by its path.

    Files of different groups neither import each other, in whatever way the project can follow, nor does a call of one
    reach a function of the other; a package is in one group with all its files.
    """
    groups = Groups(project.modules)
    for module in project.modules.values():
        for other in imports(project, module.path):
            groups.join(module.path, other)
    homes = {
        call: module.path
        for module in project.modules.values()
        for call in module.tree.nodes(ast.Call)
    }
    for call, targets in project.calls.reached.items():
        for target in targets:
            for found in (target.function, target.cls):
                if found is not None:
                    groups.join(homes[call], found.module.path)
    return groups.numbered()


def imports(project: Project, path: str) -> frozenset[str]:
    """Return the files that a file imports itself, and the packages that hold it."""
    known = project.imported
    if path not in known:
        files = project.modules
        known[path] = frozenset(imported_by(files, project.lookup, files[path]))
    return known[path]


def files_of(project: Project, program: Module) -> set[str]:
    """Return the files that a program may run: its own and what it imports, at any distance."""
    return set(closure([program.path], lambda path: imports(project, path)))


def programs(project: Project, modules: Collection[Module]) -> list[Module]:
    """Return the files that none imports, of those that belong together with some files."""
    near = project.connected_with(modules)
    imported = {path for module in near for path in imports(project, module.path) - {module.path}}
    return [module for module in near if module.path not in imported]


class Groups:
    """Files that belong together, at first each one alone."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._parent = {path: path for path in paths}

    def _find(self, path: str) -> str:
        while self._parent[path] != path:
            self._parent[path] = path = self._parent[self._parent[path]]
        return path

    def join(self, one: str, other: str) -> None:
        """Put what belongs to two files together."""
        self._parent[self._find(other)] = self._find(one)

    def numbered(self) -> dict[str, int]:
        """Return the number of the group of each file."""
        numbers: dict[str, int] = {}
        return {path: numbers.setdefault(self._find(path), len(numbers)) for path in self._parent}


def imported_by(files: Mapping[str, Module], lookup: Lookup, module: Module) -> Iterator[str]:
    """Yield the files that a file imports itself, and the packages that hold it."""
    yield from _packages(files, module)
    found: list[Meaning | None] = []
    for node in module.tree.nodes(ast.ImportFrom):
        source = lookup.source(module, node)
        found.append(source if isinstance(source, Module) else None)
        found += (m for alias in node.names for m in lookup.imported(module, alias))
    for statement in module.tree.nodes(ast.Import):
        for alias in statement.names:
            found += lookup.imported(module, alias)
            found.append(_entry(files, lookup.layout.absolute(module.path, alias.name)))
    for call in import_calls(module):
        found += lookup.expression(module, call)
    for meaning in found:
        if isinstance(meaning, Module):
            yield meaning.path
        elif isinstance(meaning, Class | Function):
            yield meaning.module.path
        elif isinstance(meaning, Folder):
            yield from (path for path in files if path.startswith(f"{meaning.path}/"))


def import_calls(module: Module) -> Iterator[ast.Call]:
    """Return the calls in a file that import by a name that is a value."""
    return (c for c in module.tree.nodes(ast.Call) if last_name(c) in _IMPORTERS)


def _packages(files: Mapping[str, Module], module: Module) -> Iterator[str]:
    """Yield the files that run before a module is imported: those of the packages that hold it."""
    folder = posixpath.dirname(module.path)
    while (package := posixpath.join(folder, "__init__.py")) in files:
        yield package
        if folder == posixpath.dirname(folder):
            return
        folder = posixpath.dirname(folder)


def _entry(files: Mapping[str, Module], where: str | Folder | None) -> Module | Folder | None:
    return files.get(where) if isinstance(where, str) else where
