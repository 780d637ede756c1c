"""Packages that their own files import by another name than that of their folder: ``package_dir={"net": "src"}``."""

from __future__ import annotations

import ast
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from amp_migrate.facts.tree import Tree
from amp_migrate.modules.layout import INSTALLED, Layout

_ENOUGH = 3
_MOST = 0.8


def renamed(layout: Layout, imports: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the folders of packages by the names that they have in imports, where no file has that name.

    `imports` are dotted names, each with the file that imports it. A folder counts where what its files import
    under the name lies in it, among it several modules of packages in it. Not all files of a folder may be given.
    """
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    missing: dict[tuple[str, str], bool] = {}
    for importer, dotted in imports:
        first, _, rest = dotted.partition(".")
        folder = layout.outermost(importer) if rest and first not in INSTALLED else None
        if folder is None or posixpath.basename(folder) == first:
            continue
        key = (folder, first)
        if key not in missing:
            missing[key] = layout.absolute(importer, first) is None
        if missing[key]:
            found[key].add(rest)
    folders: dict[str, list[str]] = defaultdict(list)
    for (folder, first), names in found.items():
        known = [name for name in names if layout.entry(folder, name.split("."))]
        deep = sum("." in name for name in known)
        if deep >= _ENOUGH and len(known) >= _MOST * len(names):
            folders[first].append(folder)
    return {first: places[0] for first, places in folders.items() if len(places) == 1}


def imports(files: Mapping[str, Tree]) -> Iterator[tuple[str, str]]:
    """Yield the dotted names that files import by their whole name."""
    for path, tree in files.items():
        for node in tree.nodes(ast.ImportFrom):
            if node.module and not node.level:
                yield path, node.module
        for statement in tree.nodes(ast.Import):
            yield from ((path, alias.name) for alias in statement.names)
