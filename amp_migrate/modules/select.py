"""Which files of a folder belong to its Apex code, by their bytes alone."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from amp_migrate.facts.closure import closure
from amp_migrate.modules.itself import defines, looked_up_in, read_off
from amp_migrate.modules.layout import INSTALLED, Folder, Layout
from amp_migrate.modules.renamed import renamed

Content = bytes | Callable[[], bytes]

# A line of a notebook begins with a quote.
_IMPORT = re.compile(
    rb"""^[ \t]*"?[ \t]*(?:
        from[ \t]+(?P<source>[.\w]+)[ \t]*import[ \t]*(?P<names>\([^)]*\)|[^\n#;]+)
        | import[ \t]+(?P<modules>[\w.]+[^\n#;]*)
    )""",
    re.MULTILINE | re.VERBOSE,
)
_BY_VALUE = re.compile(
    rb"\b(?:import_module|__import__|locate|instantiate|run_module|run_path|load_source|load_module|find_module"
    rb"|spec_from_file_location|walk_packages|iter_modules)\b"
)
_NAME = re.compile(rb"([\w.]+|\*)(?:\s+as\s+\w+)?")


def relevant(
    files: Mapping[str, Content], roots: Sequence[str] = (), mark: bytes = b"apex"
) -> list[str]:
    """Return the paths of the files to parse, in the order given.

    These are the files whose bytes hold `mark` or scale a loss, those that import one of them (at any distance),
    what all these import, and the files that import any of that, since they may call a function that changes.
    None of them where no file holds `mark`.
    """
    selection = Selection(files, roots, mark)
    return selection.with_callers(selection.needed)


class Selection:
    """The files of a folder that belong to those whose bytes hold a mark."""

    def __init__(
        self, files: Mapping[str, Content], roots: Sequence[str] = (), mark: bytes = b"apex"
    ) -> None:
        """Read the bytes of the files, all of them where one holds `mark`."""
        self._files = files
        self._imports = _Imports(files, roots)
        self._needed = self._marked(mark)
        self._imports.forget()

    @property
    def needed(self) -> list[str]:
        """The files that hold the mark or scale a loss, those that import one of them, and what all these import.

        A file that imports some of that, and others by a name that is a value, is among them: it may run any. Where one of
        these imports by value itself, so are all that import some of that: it may import them, as a folder of plugins.
        """
        return [path for path in self._files if path in self._needed]

    def with_callers(self, paths: Iterable[str]) -> list[str]:
        """Return the needed files with all others that import some of `paths`, and what those import."""
        callers = self._imports.callers(self._needed, paths)
        found = self._needed.union(closure(callers, self._imports.imported))
        return [path for path in self._files if path in found]

    def _marked(self, mark: bytes) -> set[str]:
        imports = self._imports
        seeds = {path for path in self._files if mark in imports.data(path)}
        if not seeds:
            return set()
        seeds |= {path for path in self._files if b"amp.scale_loss(" in imports.data(path)}
        imports.follow_renamed()
        users = closure(seeds, imports.importers)
        found = set(closure(users, imports.imported))
        callers = imports.callers(found, found)
        if not any(_BY_VALUE.search(imports.data(path)) for path in found):
            callers = {path for path in callers if _BY_VALUE.search(imports.data(path))}
        found |= set(closure(callers, imports.imported))
        while more := imports.by_value(found) - found:
            found |= set(closure(more, imports.imported))
        return found


class _Imports:
    """The import graph of files, read with a pattern when it is asked for."""

    def __init__(self, files: Mapping[str, Content], roots: Sequence[str]) -> None:
        self._files = files
        self._slashed = {path.replace("\\", "/"): path for path in files}
        self._layout = Layout(self._slashed, [root.replace("\\", "/") for root in roots])
        self._stems: dict[str, list[str]] = {}
        for path in self._slashed:
            self._stems.setdefault(_stem(path), []).append(path)
        self._data: dict[str, bytes] = {}
        self._written: dict[str, list[tuple[str, list[str]]]] = {}
        self._imported: dict[str, set[str]] = {}
        self._importers: dict[str, set[str]] | None = None

    def data(self, path: str) -> bytes:
        """Return the bytes of a file, read once."""
        if path not in self._data:
            content = self._files[path]
            self._data[path] = content if isinstance(content, bytes) else content()
        return self._data[path]

    def imported(self, path: str) -> set[str]:
        """Return the files that a file imports."""
        if path not in self._imported:
            found = {self._slashed[target] for target in self._targets(path)}
            self._imported[path] = found - {path}
        return self._imported[path]

    def importers(self, path: str) -> set[str]:
        """Return the files that import a file."""
        if self._importers is None:
            self._importers = {}
            for importer in self._files:
                for target in self.imported(importer):
                    self._importers.setdefault(target, set()).add(importer)
        return self._importers.get(path, set())

    def callers(self, core: Collection[str], paths: Iterable[str]) -> set[str]:
        """Return the files outside of `core` that import one of `paths`.

        What `core` imports of it by itself, or a package by its ``__init__``, may be imported from there.
        """
        queue = list(paths)
        found = set(queue)
        for path in queue:
            for importer in self.importers(path) - found:
                found.add(importer)
                if importer in core or self._layout.package(importer.replace("\\", "/")):
                    queue.append(importer)
        return found.difference(core)

    def by_value(self, paths: Iterable[str]) -> set[str]:
        """Return the files that may define what some files read off modules which they import by names worked out."""
        asking = [path for path in paths if _BY_VALUE.search(self.data(path))]
        names = frozenset().union(*(read_off(self.data(path)) for path in asking))
        found: set[str] = set()
        if names:
            defining = defines(names)
            found = {path for path in self._files if defining.search(self.data(path))}
        for path in asking:
            for package in looked_up_in(self.data(path)):
                where = self._layout.absolute(path.replace("\\", "/"), package)
                folder = where.path if isinstance(where, Folder) else None
                found.update(p for s, p in self._slashed.items() if _is_below(s, folder))
        return found

    def forget(self) -> None:
        """Let go of the bytes; what they import is known."""
        self._data.clear()

    def follow_renamed(self) -> None:
        """Find the packages that their files import by another name than that of their folder."""
        imports = (
            (path, dotted)
            for path in self._slashed
            for dotted, _ in self._statements(path)
            if not dotted.startswith(".")
        )
        self._layout.renamed = renamed(self._layout, imports)

    def _targets(self, path: str) -> Iterator[str]:
        slashed = path.replace("\\", "/")
        anywhere = b"sys.path" in self.data(path)
        for dotted, names in self._statements(slashed):
            yield from self._module(slashed, dotted, names, anywhere)

    def _statements(self, slashed: str) -> list[tuple[str, list[str]]]:
        """Return the modules that a file imports, each with the names taken from it."""
        if slashed not in self._written:
            self._written[slashed] = list(self._read(self.data(self._slashed[slashed])))
        return self._written[slashed]

    @staticmethod
    def _read(data: bytes) -> Iterator[tuple[str, list[str]]]:
        if b"import" not in data:
            return
        for match in _IMPORT.finditer(data.replace(b"\\\n", b"  ").replace(b"\r", b"")):
            if match["modules"] is not None:
                for name in _NAME.finditer(match["modules"]):
                    yield name[1].decode(), []
            else:
                names = [name[1].decode() for name in _NAME.finditer(match["names"])]
                yield match["source"].decode(), names

    def _module(
        self, importer: str, dotted: str, names: Sequence[str], anywhere: bool
    ) -> Iterator[str]:
        module = dotted.lstrip(".")
        level = len(dotted) - len(module)
        parts = module.split(".") if module else []
        for count in range(len(parts) if level else 1, len(parts) + 1):
            inner = ".".join(parts[:count])
            if level:
                where = self._layout.relative(importer, level, inner)
            else:
                where = self._layout.absolute(importer, inner)
            if where is None and anywhere and (level or parts[0] not in INSTALLED):
                yield from self._stems.get(parts[-1] if parts else "", [])
            yield from self._entry(where, names if count == len(parts) else ())

    def _entry(self, where: str | Folder | None, names: Sequence[str]) -> Iterator[str]:
        if where is None:
            return
        base = where.path if isinstance(where, Folder) else posixpath.dirname(where)
        if isinstance(where, str):
            yield where
        if isinstance(where, Folder) or self._layout.package(where):
            for name in names:
                inner = self._layout.entry(base, [name]) if name != "*" else None
                if isinstance(inner, str):
                    yield inner


def _is_below(path: str, folder: str | None) -> bool:
    return folder is not None and (not folder or path.startswith(f"{folder}/"))


def _stem(path: str) -> str:
    folder, name = posixpath.split(path)
    stem = name.rpartition(".")[0]
    return posixpath.basename(folder) if stem == "__init__" else stem
