"""What modules have that are imported by a name worked out: ``importlib.import_module(options.trainer).Trainer``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from amp_migrate.facts.constants import may_be
from amp_migrate.facts.paths import looked_up
from amp_migrate.modules.imports import import_calls
from amp_migrate.modules.itself import read_off
from amp_migrate.modules.meeting import Meeting
from amp_migrate.modules.model import Class, Function, Module
from amp_migrate.values.nodes import Nodes


class Imported:
    """Lets what the files that such a name may mean define flow to where it is read off the module."""

    def __init__(
        self, nodes: Nodes, node: Callable[[Module, ast.expr], int | None], meeting: Meeting
    ) -> None:
        self._graph = nodes.graph
        self._lookup = nodes.lookup
        self._node = node
        self._meeting = meeting
        self._named: dict[frozenset[str], dict[str, list[Module]]] = {}
        self.files: dict[str, set[str]] = {}
        """The files of which each file reads definitions so, by its path."""

    def give(self, modules: Iterable[Module]) -> set[str]:
        """Let the definitions of files be attributes of the modules that calls import; return their names."""
        files = {module.path: module for module in modules}
        found: set[str] = set()
        for module in files.values():
            for call in import_calls(module):
                paths = self._meeting.imported(module, call)
                held = self._node(module, call) if paths else None
                if held is not None:
                    found.update(self._read(module, held, self._names(files, paths)))
                    if self._meeting.names_a_package(call):
                        self._look_up(module, call, [files[path] for path in sorted(paths)])
        return found

    def _names(
        self, files: Mapping[str, Module], paths: frozenset[str]
    ) -> Mapping[str, list[Module]]:
        """Return the files that bind each name at their top level, of some."""
        if paths not in self._named:
            found: dict[str, list[Module]] = {}
            for module in (files[path] for path in sorted(paths)):
                for name in module.scopes.names(module.tree.module):
                    found.setdefault(name, []).append(module)
            self._named[paths] = found
        return self._named[paths]

    def _read(
        self, reader: Module, held: int, sources: Mapping[str, list[Module]]
    ) -> Iterator[str]:
        """Let what files define have the names that a file reads as attributes; yield those that some have."""
        for name in sorted(read_off(reader.tree.text.encode())):
            for source in sources.get(name, ()):
                for meaning in self._lookup.member(source, name):
                    if isinstance(meaning, Class | Function):
                        self.files.setdefault(reader.path, set()).add(source.path)
                        self._graph.state(self._graph.field(held, name), meaning)
                        yield name

    def _look_up(self, reader: Module, call: ast.Call, sources: list[Module]) -> None:
        """Let the classes of the files of a package come out where one is looked up by a name that is worked out."""
        for lookup in reader.tree.nodes(ast.Call):
            asked = looked_up(lookup)
            if asked is None or not _is_of(reader, asked[0], call):
                continue
            held = self._node(reader, lookup)
            for cls in (cls for source in sources for cls in source.classes.values()):
                if held is not None and "." not in cls.qualname and may_be(asked[1], cls.name):
                    self.files.setdefault(reader.path, set()).add(cls.module.path)
                    self._graph.state(held, cls)


def _is_of(module: Module, node: ast.expr, call: ast.Call) -> bool:
    """Tell whether an expression is a call, or the variable that is set to it alone."""
    return node is call or (isinstance(node, ast.Name) and module.scopes.only_value(node) is call)
