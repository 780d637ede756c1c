"""Holds the written text against the protocol of native AMP, before it is used.

It sees the old texts and the new ones, and nothing of the plan between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from amp_migrate.align import changes, moved_line
from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.check import faults
from amp_migrate.protocol.faults import Breach, Fault, Place

_NEW = Counter[tuple[Breach, str]]


def breaches(before: Mapping[str, Tree], after: Mapping[str, str]) -> list[Fault]:
    """Return what new texts do against the protocol of native AMP that the old ones did not.

    `before` holds every file of the project, `after` the new texts of those that change. The places of a fault
    are lines of the old texts; the first place of its way that lies in a changed file comes last.
    """
    trees = dict(before)
    for path, text in after.items():
        trees[path] = Tree(path, text)
    found = faults(build(trees))
    if not found:
        return []
    old = _NEW((fault.breach, fault.place.path) for fault in faults(build(before)))
    fresh = []
    for fault in found:
        key = fault.breach, fault.place.path
        if old[key] > 0:
            old[key] -= 1
        else:
            fresh.append(_in_old_lines(fault, before, after))
    return fresh


def _in_old_lines(fault: Fault, before: Mapping[str, Tree], after: Mapping[str, str]) -> Fault:
    def old(place: Place) -> Place:
        if place.path not in after:
            return place
        differences = changes(after[place.path].split("\n"), before[place.path].text.split("\n"))
        return Place(place.path, moved_line(place.line - 1, differences) + 1)

    way = tuple(dict.fromkeys(old(place) for place in fault.way))
    return replace(fault, place=old(fault.place), way=way)
