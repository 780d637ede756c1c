"""Which files belong to one program: those that imports or calls connect, at any distance."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from amp_migrate.facts.closure import closure
from amp_migrate.facts.imports import last_name
from amp_migrate.project.layout import Folder
from amp_migrate.project.lookup import Meaning
from amp_migrate.project.model import Class, Function, Module

if TYPE_CHECKING:
    from amp_migrate.project.project import Project

_IMPORTERS = ("import_module", "__import__")


def connected(project: Project) -> dict[str, int]:
    """Return the number of the group that each file belongs to, by its path.

    Files of different groups neither import each other, in whatever way the project can follow, nor does a call of one
    reach a function of the other; a package is in one group with all its files.
    """
    groups = _Groups(project)
    for module in project.modules.values():
        for other in imports(project, module.path):
            groups.join(module.path, other)
    for call, targets in project.calls.reached.items():
        for target in targets:
            for found in (target.function, target.cls):
                if found is not None:
                    groups.join(groups.homes[call], found.module.path)
    numbers: dict[str, int] = {}
    return {path: numbers.setdefault(groups.find(path), len(numbers)) for path in project.modules}


def imports(project: Project, path: str) -> frozenset[str]:
    """Return the files that a file imports itself, and the packages that hold it."""
    known = project.imported
    if path not in known:
        module = project.modules[path]
        known[path] = frozenset((*_imported(project, module), *_packages(project, module)))
    return known[path]


def files_of(project: Project, program: Module) -> set[str]:
    """Return the files that a program may run: its own and what it imports, at any distance."""
    return set(closure([program.path], lambda path: imports(project, path)))


class _Groups:
    def __init__(self, project: Project) -> None:
        self._parent = {path: path for path in project.modules}
        self.homes = {
            call: module.path
            for module in project.modules.values()
            for call in module.tree.nodes(ast.Call)
        }

    def find(self, path: str) -> str:
        while self._parent[path] != path:
            self._parent[path] = path = self._parent[self._parent[path]]
        return path

    def join(self, one: str, other: str) -> None:
        self._parent[self.find(other)] = self.find(one)


def _imported(project: Project, module: Module) -> Iterator[str]:
    lookup = project.lookup
    found: list[Meaning | None] = []
    for node in module.tree.nodes(ast.ImportFrom):
        source = lookup.source(module, node)
        found.append(source if isinstance(source, Module) else None)
        found += (m for alias in node.names for m in lookup.imported(module, alias))
    for statement in module.tree.nodes(ast.Import):
        for alias in statement.names:
            found += lookup.imported(module, alias)
            found.append(_entry(project, lookup.layout.absolute(module.path, alias.name)))
    for call in module.tree.nodes(ast.Call):
        if last_name(call) in _IMPORTERS:
            found += lookup.expression(module, call)
    for meaning in found:
        if isinstance(meaning, Module):
            yield meaning.path
        elif isinstance(meaning, Class | Function):
            yield meaning.module.path
        elif isinstance(meaning, Folder):
            yield from (p for p in project.modules if p.startswith(f"{meaning.path}/"))


def _packages(project: Project, module: Module) -> Iterator[str]:
    """Yield the files that run before a module is imported: those of the packages that hold it."""
    folder = posixpath.dirname(module.path)
    while (package := posixpath.join(folder, "__init__.py")) in project.modules:
        yield package
        if folder == posixpath.dirname(folder):
            return
        folder = posixpath.dirname(folder)


def _entry(project: Project, where: str | Folder | None) -> Module | Folder | None:
    return project.modules.get(where) if isinstance(where, str) else where
