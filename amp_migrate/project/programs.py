"""Which files belong to one program: those that imports or calls connect, at any distance."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TYPE_CHECKING

from amp_migrate.facts.closure import closure
from amp_migrate.modules.imports import Groups, imported_by
from amp_migrate.modules.model import Module

if TYPE_CHECKING:
    from amp_migrate.project.project import Project


def connected(project: Project) -> dict[str, int]:
    """Return the number of the group that each file belongs to, by its path.

    Files of different groups neither import each other, in whatever way the project can follow, nor does a call of one
    reach a function of the other; a package is in one group with all its files.
    """
    groups = Groups(project.modules)
    for module in project.modules.values():
        for other in imports(project, module.path):
            groups.join(module.path, other)
    homes = {call: module.path for module, call in project.nodes(ast.Call)}
    for call, targets in project.calls.reached.items():
        for target in targets:
            for found in (target.function, target.cls):
                if found is not None:
                    groups.join(homes[call], found.module.path)
    return groups.numbered()


def imports(project: Project, path: str) -> frozenset[str]:
    """Return the files that a file imports itself, and the packages that hold it."""
    known = project.imported
    if path not in known:
        files = project.modules
        known[path] = frozenset(imported_by(files, project.lookup, files[path]))
    return known[path]


def files_of(project: Project, program: Module) -> set[str]:
    """Return the files that a program may run: its own and what it imports, at any distance."""
    return set(closure([program.path], lambda path: imports(project, path)))


def programs(project: Project, modules: Collection[Module]) -> list[Module]:
    """Return the files that none imports, of those that belong together with some files."""
    near = project.connected_with(modules)
    imported = {path for module in near for path in imports(project, module.path) - {module.path}}
    return [module for module in near if module.path not in imported]
