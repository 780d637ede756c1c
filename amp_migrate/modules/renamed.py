"""Packages that their own files import by another name than that of their folder: ``package_dir={"net": "src"}``."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable

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
