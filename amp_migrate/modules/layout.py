"""Where the modules of a project lie, and which file an import statement reads."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

# Names that a far-away project file must not take from an installed package.
INSTALLED = frozenset(sys.stdlib_module_names) | {
    "apex",
    "cv2",
    "horovod",
    "matplotlib",
    "numpy",
    "scipy",
    "sklearn",
    "tensorflow",
    "torch",
    "torchvision",
    "tqdm",
    "transformers",
    "yaml",
}


@dataclass(frozen=True, slots=True)
class Folder:
    """A package without ``__init__.py``, by its path."""

    path: str


class Layout:
    """The files of a project as modules.

    Paths use forward slashes, all absolute or all relative; `roots` are the folders (or files) that
    the project was given as. `renamed` are the folders of packages that are imported by another name.
    """

    def __init__(self, paths: Iterable[str], roots: Sequence[str] = ()) -> None:
        self.files = set(paths)
        self.folders: set[str] = set()
        self._bases: dict[str, list[str]] = {}
        self._added: dict[str, list[str]] = {}
        self._read: dict[tuple[str, str], str | Folder | None] = {}
        self.renamed: Mapping[str, str] = {}
        for path in self.files:
            for folder in _above(path):
                if folder in self.folders:
                    break
                self.folders.add(folder)
        self.roots = [root for root in map(_clean, roots) if root not in self.files]
        self._index()

    def add_search_folders(self, path: str, folders: Iterable[str]) -> None:
        """Note the folders that the file at `path` adds to ``sys.path``."""
        known = []
        for folder in folders:
            tries = [
                folder,
                *(posixpath.join(base, folder) for base in [*_above(path), *self.roots]),
            ]
            known += [clean for clean in map(_clean, tries) if clean in self.folders]
        if known:
            self._added[path] = known
            self._read.clear()

    def package(self, path: str) -> bool:
        """Tell whether the file is the ``__init__.py`` of a package."""
        return posixpath.basename(path) == "__init__.py"

    def name(self, path: str) -> str:
        """Return the dotted name of a file from the folder that holds its outermost package."""
        return self._dotted(path, self.base(path))

    def names(self, path: str) -> tuple[str, ...]:
        """Return every dotted name a file may be imported by: from its package, and from each folder above."""
        found = [self.name(path)]
        for folder in _above(path):
            found.append(self._dotted(path, folder))
            if folder in self.roots:
                break
        return tuple(dict.fromkeys(name for name in found if name))

    def relative(self, importer: str, level: int, module: str) -> str | Folder | None:
        """Return the file or folder that ``from ..module import x`` in `importer` reads."""
        base = posixpath.dirname(importer)
        for _ in range(level - 1):
            if not base:
                return None
            base = posixpath.dirname(base)
        return self.entry(base, module.split(".") if module else [])

    def absolute(self, importer: str, dotted: str) -> str | Folder | None:
        """Return the file or folder that ``import dotted`` in `importer` reads; None if it is not here."""
        if (importer, dotted) not in self._read:
            self._read[importer, dotted] = self._searched(importer, dotted.split("."))
        found = self._read[importer, dotted]
        first, *rest = dotted.split(".")
        if found is None and first in self.renamed:
            return self.entry(self.renamed[first], rest)
        return found

    def _searched(self, importer: str, parts: Sequence[str]) -> str | Folder | None:
        for base in self._search_folders(importer, parts[0]):
            entry = self.entry(base, parts)
            # A folder without __init__.py never hides an installed package, one that is installed from it among them.
            hidden = isinstance(entry, Folder) and (
                parts[0] in INSTALLED or self._is_distribution(base, parts[0])
            )
            if entry is not None and not hidden and self._may_read(importer, base, entry, parts):
                return entry
        return None

    def _is_distribution(self, base: str, name: str) -> bool:
        """Tell whether a folder holds the package that is installed from it by the same name: ``kit/kit/__init__.py``."""
        folder = posixpath.join(base, name)
        return not self._has_init(folder) and self._has_init(posixpath.join(folder, name))

    def found_from(self, importer: str, dotted: str) -> str | None:
        """Return the folder that ``import dotted`` in `importer` finds its file or folder in; None if it is not here."""
        found = self.absolute(importer, dotted)
        if found is None:
            return None
        stem = found.path if isinstance(found, Folder) else found.removesuffix("/__init__.py")
        for _ in dotted.split("."):
            stem = posixpath.dirname(stem)
        return stem

    def _may_read(
        self, importer: str, base: str, entry: str | Folder, parts: Sequence[str]
    ) -> bool:
        """Tell whether a file may import what lies in a folder: itself only as the outermost package of its name."""
        own = self.package(importer) and not self._has_init(base) and parts[0] not in INSTALLED
        return entry != importer or own

    def candidates(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files, those of packages by their ``__init__.py``, that some names of modules may mean."""
        for name in sorted(set(names) - INSTALLED):
            for base in self._bases.get(name, ()):
                entry = self.entry(base, [name])
                if isinstance(entry, str):
                    yield entry

    def base(self, path: str) -> str:
        """Return the folder that holds the outermost package of a file, its own where it lies in none."""
        for folder in _above(path):
            if not self._has_init(folder):
                return folder
        return ""

    def outermost(self, path: str) -> str | None:
        """Return the folder of the outermost package that holds a file; None where it lies in none."""
        base = self.base(path)
        first = path[len(base) :].lstrip("/").partition("/")
        return posixpath.join(base, first[0]) if first[1] else None

    def entry(self, base: str, parts: Sequence[str]) -> str | Folder | None:
        """Return the module `parts` under the folder `base`: a file, else a folder of modules, else None."""
        stem = posixpath.join(base, *parts)
        for path in (posixpath.join(stem, "__init__.py"), f"{stem}.py" if parts else ""):
            if path in self.files:
                return path
        return Folder(stem) if stem in self.folders else None

    def _search_folders(self, importer: str, first: str) -> list[str]:
        own = posixpath.dirname(importer)
        above = [folder for folder in _above(importer) if self._within(folder)]
        inside = [folder for folder in above if self._has_init(folder)]
        outside = [folder for folder in above if not self._has_init(folder)]
        found = [*self._added.get(importer, ()), *outside, self.base(importer)]
        if first not in INSTALLED:
            found += inside
            found += self._elsewhere(own, first)
        return list(dict.fromkeys(found))

    def _elsewhere(self, own: str, first: str) -> list[str]:
        bases = self._bases.get(first, [])
        added = [base for folders in self._added.values() for base in folders if base in bases]
        named = [base for base in bases if self._has_init(posixpath.join(base, first))]
        ranked = sorted(
            named or bases, key=lambda base: (-len(_shared(own, base)), len(base), base)
        )
        return [*added, *(ranked if named or len(bases) == 1 else [])]

    def _index(self) -> None:
        for path in sorted(self.files):
            folder, name = posixpath.split(path)
            stem = name.removesuffix(".py")
            if stem == "__init__":
                folder, stem = posixpath.split(folder)
            if not self._has_init(folder):
                self._bases.setdefault(stem, []).append(folder)

    def _within(self, folder: str) -> bool:
        return not self.roots or any(
            root in {"", folder} or folder.startswith(f"{root}/") for root in self.roots
        )

    def _has_init(self, folder: str) -> bool:
        return posixpath.join(folder, "__init__.py") in self.files

    def _dotted(self, path: str, base: str) -> str:
        stem = path[len(base) :].lstrip("/").removesuffix(".py").removesuffix("__init__").strip("/")
        return stem.replace("/", ".")


def _above(path: str) -> Iterable[str]:
    folder = posixpath.dirname(path)
    while True:
        yield folder
        if folder in {"", "/"}:
            return
        folder = posixpath.dirname(folder)


def _clean(path: str) -> str:
    normal = posixpath.normpath(path)
    return "" if normal == "." else normal


def _shared(one: str, other: str) -> list[str]:
    shared = []
    for a, b in zip(one.split("/"), other.split("/"), strict=False):
        if a != b:
            break
        shared.append(a)
    return shared
