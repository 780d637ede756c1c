"""Which files a file imports, and which belong together by that."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from amp_migrate.facts.imports import last_name
from amp_migrate.modules.itself import IMPORTERS
from amp_migrate.modules.layout import Folder
from amp_migrate.modules.lookup import Lookup, Meaning
from amp_migrate.modules.model import Class, Function, Module

_LOADS = frozenset({"exec_module", "load_module", "load_source"})
_MACHINERY = ("imp", "importlib", "pkgutil", "zipimport")


Member = TypeVar("Member", bound=Hashable)


class Groups(Generic[Member]):
    """Files, or groups of them, that belong together, at first each one alone."""

    def __init__(self, members: Iterable[Member]) -> None:
        self._parent = {member: member for member in members}

    def _find(self, member: Member) -> Member:
        while self._parent[member] != member:
            self._parent[member] = member = self._parent[self._parent[member]]
        return member

    def join(self, one: Member, other: Member) -> None:
        """Put what belongs to two of them together."""
        self._parent[self._find(other)] = self._find(one)

    def numbered(self) -> dict[Member, int]:
        """Return the number of the group of each one."""
        numbers: dict[Member, int] = {}
        return {one: numbers.setdefault(self._find(one), len(numbers)) for one in self._parent}


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


def run_by(lookup: Lookup, module: Module, alias: ast.alias) -> list[Module]:
    """Return the files that an import runs where they have not run before, those of packages too."""
    statement = module.tree.parents.get(alias)
    found: list[Meaning | None] = []
    if isinstance(statement, ast.ImportFrom):
        source = lookup.source(module, statement)
        found.append(source)
        if not isinstance(source, str | None) and alias.name != "*":
            found += lookup.member(source, alias.name)
    else:
        found.append(_entry(lookup.modules, lookup.layout.absolute(module.path, alias.name)))
    files = dict.fromkeys(meaning for meaning in found if isinstance(meaning, Module))
    around = (lookup.modules[path] for file in files for path in _packages(lookup.modules, file))
    return [other for other in dict.fromkeys([*around, *files]) if other is not module]


def import_calls(module: Module) -> Iterator[ast.Call]:
    """Return the calls in a file that import by a name that is a value, as one of the loaders of Python's own modules."""
    loads = any(name.partition(".")[0] in _MACHINERY for name in _imported_names(module))
    names = IMPORTERS | _LOADS if loads else IMPORTERS
    return (c for c in module.tree.nodes(ast.Call) if last_name(c) in names)


def _imported_names(module: Module) -> Iterator[str]:
    """Yield the absolute names of the modules that statements of a file import."""
    for node in module.tree.nodes(ast.ImportFrom):
        yield node.module or "" if not node.level else ""
    for statement in module.tree.nodes(ast.Import):
        yield from (alias.name for alias in statement.names)


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
