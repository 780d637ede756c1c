"""Which objects may meet: those of files that imports connect, and of files that are imported by names worked out."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

from amp_migrate.facts.imports import last_name
from amp_migrate.modules.imports import Groups, import_calls, imported_by
from amp_migrate.modules.itself import IMPORTERS
from amp_migrate.modules.layout import Folder
from amp_migrate.modules.lookup import Lookup
from amp_migrate.modules.model import Module


class Meeting:
    """Tells whether objects made in one file may come to another, as imports alone show.

    An import that no file is found for may mean any file that has the name; a file that imports by names worked out as
    the program runs meets the files of the package that those names begin with, else what lies below the folders that
    it and the files it is connected with are imported from, and everything where no import shows such a folder.
    """

    def __init__(self, modules: Iterable[Module], lookup: Lookup) -> None:
        files = self._files = {module.path: module for module in modules}
        self._lookup = lookup
        groups = Groups(files)
        perhaps: list[tuple[str, str]] = []
        self._open: set[str] = set()
        self._within: dict[str, set[str]] = {}
        for path, module in files.items():
            named = lookup.layout.candidates(_not_found(lookup, module))
            perhaps += [(path, other) for other in named if other in files]
            self._work_out(module)
            found = self._within.get(path, set())
            for other in (*imported_by(files, lookup, module), *found):
                groups.join(path, other)
        numbers = self._numbers = groups.numbered()
        self._below: dict[int, frozenset[str]] = {}
        perhaps += [(path, other) for path in sorted(self._open) for other in self.below(path)]
        self._together = {frozenset((numbers[one], numbers[other])) for one, other in perhaps}

    def may(self, one: Module, other: Module) -> bool:
        """Tell whether an object of a class of either file may come to the other one."""
        both = frozenset((self._numbers[one.path], self._numbers[other.path]))
        return len(both) == 1 or both in self._together

    def apart(self) -> list[list[str]]:
        """Return the files in groups whose objects never meet, each in the order of all."""
        groups = Groups(range(1 + max(self._numbers.values(), default=-1)))
        for both in self._together:
            groups.join(min(both), max(both))
        numbers = groups.numbered()
        found: dict[int, list[str]] = {}
        for path, number in self._numbers.items():
            found.setdefault(numbers[number], []).append(path)
        return list(found.values())

    def worked_out(self) -> dict[str, frozenset[str]]:
        """Return the files that a file may import by names that it works out, by its path."""
        found = {path: self.below(path) for path in self._open}
        within = {path: frozenset(files) for path, files in self._within.items()}
        return within | {path: files | within.get(path, set()) for path, files in found.items()}

    def imported(self, module: Module, call: ast.Call) -> frozenset[str]:
        """Return the files that a call may import by a name that it works out; none for one whose name is known."""
        if self._lookup.expression(module, call):
            return frozenset()
        if (begin := _begin(call)) is None:
            return self.below(module.path)
        return frozenset(_within(self._files, self._lookup, module, begin))

    @staticmethod
    def names_a_package(call: ast.Call) -> bool:
        """Tell whether the name that a call works out begins with that of a package."""
        return _begin(call) is not None

    def below(self, path: str) -> frozenset[str]:
        """Return the files that a file may import by a name of which nothing is known."""
        number = self._numbers[path]
        if number not in self._below:
            own = [m for other, m in self._files.items() if self._numbers[other] == number]
            self._below[number] = frozenset(_below(self._files, _folders(self._lookup, own)))
        return self._below[number]

    def _work_out(self, module: Module) -> None:
        """Note what a file imports by names that it works out."""
        for call in import_calls(module):
            if self._lookup.expression(module, call):
                continue
            if (begin := _begin(call)) is None:
                self._open.add(module.path)
            else:
                within = self._within.setdefault(module.path, set())
                within.update(_within(self._files, self._lookup, module, begin))


def _folders(lookup: Lookup, modules: Collection[Module]) -> set[str]:
    """Return the folders that some files, and what they import, are imported from; none where no import shows one."""
    layout = lookup.layout
    found = {
        layout.found_from(module.path, dotted) for module in modules for dotted in _absolute(module)
    }
    relative = any(node.level for module in modules for node in module.tree.nodes(ast.ImportFrom))
    if not found - {None} and not relative:
        return set()
    return {folder for folder in found if folder is not None} | {
        layout.base(module.path) for module in modules
    }


def _below(files: Iterable[str], folders: Collection[str]) -> Iterator[str]:
    """Yield the files below some folders; all where there is none."""
    starts = tuple(f"{folder}/" for folder in folders if folder)
    every = len(starts) < len(folders) or not folders
    return (path for path in files if every or path.startswith(starts))


def _absolute(module: Module) -> Iterator[str]:
    """Yield the dotted names of the absolute imports of a file."""
    for node in module.tree.nodes(ast.ImportFrom):
        if not node.level and node.module:
            yield node.module
    for statement in module.tree.nodes(ast.Import):
        yield from (alias.name for alias in statement.names)


def _not_found(lookup: Lookup, module: Module) -> Iterator[str]:
    """Yield the first names of absolute imports that no file is found for."""
    for name in _absolute(module):
        if lookup.layout.absolute(module.path, name) is None:
            yield name.partition(".")[0]


def _begin(call: ast.Call) -> str | None:
    """Return the package that a computed name of a module begins with, as ``"models."`` says it; None for any."""
    text = _first(call.args[0]) if call.args and last_name(call) in IMPORTERS else ""
    package, dot, _ = text.rpartition(".")
    return package + dot if dot else None


def _first(node: ast.expr) -> str:
    """Return the text that a string begins with, as far as it is written there."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return _first(node.values[0]) if node.values else ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _first(node.left)
    return ""


def _within(
    files: Mapping[str, Module], lookup: Lookup, module: Module, begin: str
) -> Iterator[str]:
    """Yield the files under the package that a name begins with, as an import in a module reads it."""
    name = begin.rstrip(".")
    if begin.startswith("."):
        dots = len(begin) - len(begin.lstrip("."))
        where = lookup.layout.relative(module.path, dots, name[dots:])
    else:
        where = lookup.layout.absolute(module.path, name)
    if where is None:
        return
    folder = where.path if isinstance(where, Folder) else where.rpartition("/")[0]
    yield from (path for path in files if path.startswith(f"{folder}/") or not folder)
