"""Which files belong to one program: those that imports or calls connect, at any distance."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import bottom
from amp_migrate.modules.imports import Groups, imported_by
from amp_migrate.modules.model import Module
from amp_migrate.project.once import kept, once
from amp_migrate.values.written import is_handed_on

if TYPE_CHECKING:
    from amp_migrate.modules.model import Function
    from amp_migrate.project.project import Project


_LOCATORS = frozenset(
    {f"hydra.utils.{name}" for name in ("call", "get_class", "get_method", "instantiate")}
    | {"pydoc.locate", "runpy.run_module", "runpy.run_path"}
)
# The files that pytest finds by their names.
_TESTS = ("conftest.py", "test_*.py", "*_test.py")


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
    """Return the files that a file imports itself, by names worked out where what it reads of them shows which, and the packages that hold it."""
    known = project.imported
    if path not in known:
        files = project.modules
        worked_out = project.calls.imported.files.get(path, ())
        known[path] = frozenset([*imported_by(files, project.lookup, files[path]), *worked_out])
    return known[path]


def files_of(project: Project, program: Module) -> frozenset[str]:
    """Return the files that a program may run: its own and what it imports, at any distance."""
    path = program.path
    return kept(
        project, (files_of, path), lambda: frozenset(closure([path], partial(imports, project)))
    )


def beside(project: Project, *paths: str) -> frozenset[str]:
    """Return the files that some program may run together with one of some files."""
    found = (kept(project, (beside, p), partial(_beside, project, p)) for p in dict.fromkeys(paths))
    return frozenset().union(*found)


def _beside(project: Project, path: str) -> frozenset[str]:
    return frozenset(run_by(project, *closure([path], partial(_may_import, project))))


def run_by(project: Project, *paths: str) -> list[str]:
    """Return some files and what they may import, at any distance."""
    return closure(paths, partial(_may_be_imported, project))


def running(project: Project, path: str) -> list[str]:
    """Return a file and those that import it, at any distance, nearest first."""
    return closure([path], lambda each: _importing(project).get(each, ()))


def _may_import(project: Project, path: str) -> Iterable[str]:
    """Yield the files that may import a file themselves."""
    yield from _importing(project).get(path, ())
    if not _is_collected(path):
        yield from (other for other, files in _worked_out(project).items() if path in files)


def _may_be_imported(project: Project, path: str) -> Iterable[str]:
    """Yield the files that a file may import itself, by names that it works out as well."""
    yield from imports(project, path)
    yield from (p for p in _worked_out(project).get(path, ()) if not _is_collected(p))


def _is_collected(path: str) -> bool:
    """Tell whether a file is one that pytest looks for: no program imports it by a name that it works out."""
    name = posixpath.basename(path)
    return any(fnmatchcase(name, pattern) for pattern in _TESTS)


def is_run_by_pytest(function: Function) -> bool:
    """Tell whether pytest runs a function by its name, each time anew: no call of a value comes to it."""
    return function.name.startswith("test") and _is_collected(function.module.path)


def run_from(project: Project, entries: Iterable[Function]) -> frozenset[str]:
    """Return the files of which something may run behind some functions: a script runs what it imports itself."""
    found: set[str] = set()
    for path, top in dict.fromkeys((f.module.path, f.node is None) for f in entries):
        alone = top and not any(True for _ in _may_import(project, path))
        found.update(run_by(project, path) if alone else beside(project, path))
    return frozenset(found)


@once
def _importing(project: Project) -> dict[str, list[str]]:
    """Return the files that import a file themselves, by its path."""
    found: dict[str, list[str]] = {}
    for path in project.modules:
        for other in imports(project, path):
            found.setdefault(other, []).append(path)
    return found


@once
def _worked_out(project: Project) -> dict[str, frozenset[str]]:
    """Return the files that a file may import by names that it works out, or asks a library to find, by its path."""
    meeting = project.calls.meeting
    asking = (
        m.path for m, c in project.nodes(ast.Call) if project.external(m, c.func) in _LOCATORS
    )
    found = meeting.worked_out()
    return found | {path: found.get(path, frozenset()) | meeting.below(path) for path in asking}


def number_of(project: Project, path: str) -> int:
    """Return the number of the group of connected files that a file belongs to, however its path is written."""
    return project.programs[path.replace("\\", "/")]


def programs(project: Project, modules: Collection[Module]) -> dict[Module, frozenset[str]]:
    """Return the files that none imports, of those that belong together with some files, each with the files it may run."""
    groups = frozenset(project.programs[module.path] for module in modules)
    return kept(project, (programs, groups), partial(_programs, project, modules))


def _programs(project: Project, modules: Collection[Module]) -> dict[Module, frozenset[str]]:
    near = project.connected_with(modules)
    imported = {path for module in near for path in imports(project, module.path) - {module.path}}
    return {m: files_of(project, m) for m in near if m.path not in imported}


def is_touched_elsewhere(project: Project, module: Module, name: str) -> bool:
    """Tell whether a file that some program runs beside one may read or write a variable of it."""
    near = beside(project, module.path) - {module.path}
    others = [m for m in project.modules.values() if m.path in near]
    wanted = {name, "*"} if any(_names(other, name) for other in others) else {name}
    return is_handed_on(project.lookup, others, module) or any(
        any(
            _brings(project, other, node, module, wanted)
            for node in other.tree.nodes(ast.ImportFrom)
        )
        or any(_is_imported(other, n) for n in other.tree.attributes(name))
        for other in others
    )


def _names(module: Module, name: str) -> bool:
    """Tell whether a file names something by a name, as a variable, an attribute, an import or a string."""
    tree = module.tree
    if name not in tree.text:
        return False
    imported = (word for alias in tree.nodes(ast.alias) for word in (alias.name, alias.asname))
    named = any(node.id == name for node in tree.nodes(ast.Name)) or name in imported
    return named or any(tree.attributes(name)) or tree.says(name)


def _brings(
    project: Project, file: Module, statement: ast.ImportFrom, module: Module, wanted: set[str]
) -> bool:
    """Tell whether an import of a file may bring it a wanted variable of a module, under whatever name."""
    if not any(alias.name in wanted for alias in statement.names):
        return False
    source = project.lookup.source(file, statement)
    if isinstance(source, Module):
        return source is module
    stem = posixpath.basename(module.path).removesuffix(".py")
    return (statement.module or "").rpartition(".")[2] == stem


def _is_imported(module: Module, attribute: ast.Attribute) -> bool:
    """Tell whether an attribute is spelt from a name that an import binds."""
    base = bottom(attribute)
    return isinstance(base, ast.Name) and any(
        isinstance(binding, ast.alias) for binding in module.scopes.bound(base)
    )
