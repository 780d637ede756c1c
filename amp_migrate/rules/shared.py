"""Definitions that several files of one folder would get: the first one keeps it, the others import it from there."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import replace

from amp_migrate.modules.imports import imported_by
from amp_migrate.plan.model import AddImport, Decision, Edit, Insert
from amp_migrate.project import Module, Project
from amp_migrate.project.imported import acts


def shared(project: Project, decisions: Iterable[Decision]) -> list[Decision]:
    """Return the decisions with each definition written once where the files that need it can import it."""
    kept: dict[tuple[str, str], list[Module]] = {}
    found = []
    for made in decisions:
        edits: list[tuple[str, Edit]] = []
        for path, edit in made.edits:
            written = _imported(project, kept, path, edit) if isinstance(edit, Insert) else edit
            edits.append((path, written))
        found.append(replace(made, edits=_needed(edits)) if edits != made.edits else made)
    return found


def _imported(
    project: Project, kept: dict[tuple[str, str], list[Module]], path: str, edit: Insert
) -> Edit:
    """Return the import of a definition that another file has by now, else the definition."""
    if not edit.defines:
        return edit
    module, holders = project.modules[path], kept.setdefault((edit.defines, edit.text), [])
    for holder in holders:
        source = _source(project, module, holder)
        if source is not None:
            return AddImport(f"from {source} import {edit.defines}")
    holders.append(module)
    return edit


def _needed(edits: list[tuple[str, Edit]]) -> list[tuple[str, Edit]]:
    """Drop the imports that only a definition needed which is imported itself now."""
    texts = {path: "" for path, _ in edits}
    for path, edit in edits:
        texts[path] += edit.text if isinstance(edit, Insert) else ""
    return [
        (path, edit)
        for path, edit in edits
        if not isinstance(edit, AddImport)
        or not edit.text.startswith("import ")
        or f"{edit.text.rpartition(' ')[2]}." in texts[path]
    ]


def _source(project: Project, module: Module, holder: Module) -> str | None:
    """Return how a file names another one of its folder in an import; None where that is not told, or not safe."""
    folder, name = posixpath.split(holder.path)
    stem = posixpath.splitext(name)[0]
    if folder != posixpath.dirname(module.path) or not name.endswith(".py"):
        return None
    if not stem.isidentifier() or stem == "__init__" or acts(holder):
        return None
    files = project.modules
    loaded, own = (set(imported_by(files, project.lookup, m)) for m in (holder, module))
    if module.path in loaded or not loaded <= own | {module.path, holder.path}:
        return None
    if any(statement.level for statement in _imports(module)):
        return f".{stem}"
    for root in _roots(project, module):
        if folder == root or folder.startswith(f"{root}/" if root else ""):
            return posixpath.join(folder[len(root) :].strip("/"), stem).replace("/", ".")
    package = files.get(posixpath.join(folder, "__init__.py"))
    if package is not None and _takes(project, package, module):
        return f".{stem}"
    return None


def _imports(module: Module) -> Iterator[ast.ImportFrom]:
    return (stmt for stmt in module.tree.module.body if isinstance(stmt, ast.ImportFrom))


def _roots(project: Project, module: Module) -> Iterator[str]:
    """Yield the folders from which a file imports others of the project."""
    for statement in _imports(module):
        source = project.lookup.source(module, statement)
        if statement.level or not isinstance(source, Module) or statement.module is None:
            continue
        named = statement.module.replace(".", "/")
        for ending in (f"{named}.py", f"{named}/__init__.py"):
            if source.path == ending or source.path.endswith(f"/{ending}"):
                yield source.path[: -len(ending)].rstrip("/")


def _takes(project: Project, package: Module, module: Module) -> bool:
    """Tell whether a package imports a file of its own by a relative import."""
    return any(
        statement.level and project.lookup.source(package, statement) is module
        for statement in _imports(package)
    )
