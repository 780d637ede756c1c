"""Which objects may meet: those of files that imports connect, and of files that are imported by names worked out."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from amp_migrate.facts.imports import last_name
from amp_migrate.modules.imports import Groups, import_calls, imported_by
from amp_migrate.modules.itself import IMPORTERS
from amp_migrate.modules.layout import Folder
from amp_migrate.modules.lookup import Lookup
from amp_migrate.modules.model import Module


class Meeting:
    """Tells whether objects made in one file may come to another, as imports alone show.

    An import that no file is found for may mean any file that has the name; a file that imports by names worked out as
    the program runs meets the files of the package that those names begin with, else everything.
    """

    def __init__(self, modules: Iterable[Module], lookup: Lookup) -> None:
        files = {module.path: module for module in modules}
        groups = Groups(files)
        perhaps: list[tuple[str, str]] = []
        importing: list[str] = []
        for path, module in files.items():
            for other in imported_by(files, lookup, module):
                groups.join(path, other)
            named = lookup.layout.candidates(_not_found(lookup, module))
            perhaps += [(path, other) for other in named if other in files]
            for call in import_calls(module):
                if lookup.expression(module, call):
                    continue
                if (begin := _begin(call)) is None:
                    importing.append(path)
                else:
                    for other in _within(files, lookup, module, begin):
                        groups.join(path, other)
        numbers = self._numbers = groups.numbered()
        self._open = {numbers[path] for path in importing}
        self._perhaps = {frozenset((numbers[one], numbers[other])) for one, other in perhaps}

    def may(self, one: Module, other: Module) -> bool:
        """Tell whether an object of a class of either file may come to the other one."""
        both = frozenset((self._numbers[one.path], self._numbers[other.path]))
        return len(both) == 1 or bool(both & self._open) or both in self._perhaps


def _not_found(lookup: Lookup, module: Module) -> Iterator[str]:
    """Yield the first names of absolute imports that no file is found for."""
    dotted = [node.module for node in module.tree.nodes(ast.ImportFrom) if not node.level]
    dotted += [alias.name for node in module.tree.nodes(ast.Import) for alias in node.names]
    for name in filter(None, dotted):
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
