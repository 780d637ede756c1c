"""The modules beside the script go into a package, which may offer their names itself."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from random import Random

from generated.refactor.code.identifiers import Edit, Text, Unsure, edited, text
from generated.refactor.code.importing import dotted, imports
from generated.refactor.files.moves import by_kind
from generated.refactor.files.restyle import taken
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_NAMES = ("project", "src_pkg", "kit", "training_lib", "pkg_a", "pkg_b")


def _package(project: Project, rng: Random) -> Project | None:
    """Move the modules that others import into a new package."""
    if "/" in project.entry or "import_module" in project.text:
        return None
    try:
        read = {
            str(i.path)
            for path in project.files
            for i in imports(project, path, text(project.files[path]).tree)
            if i.path
        }
        moving = sorted(p for p in read if "/" not in p and p != project.entry)
        used = {PurePosixPath(p).parts[0].removesuffix(".py") for p in project.files}
        if not moving and len(project.files) == 1:
            several = by_kind(project, rng)
            return (
                _package(several, rng) if several is not None and len(several.files) > 1 else None
            )
        names = [n for n in _NAMES if n not in used and n not in project.text]
        if not moving or not names:
            return None
        name = rng.choice(names)
        relative = rng.random() < 0.6
        files = {f"{name}/__init__.py": ""}
        for path in project.files:
            inside = path in moving
            changed = _reimported(project, path, moving, name, inside and relative)
            if changed is None:
                return None
            files[f"{name}/{path}" if inside else path] = changed
        return replace(project, files=files)
    except (Unsure, SyntaxError):
        return None


def _reimported(
    project: Project, path: str, moving: Sequence[str], name: str, relative: bool
) -> str | None:
    """Return a file that imports the moved modules from their package."""
    held = text(project.files[path])
    edits: list[Edit] = []
    for node in ast.walk(held.tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        found = [i for i in imports(project, path, node) if i.path in moving]
        if not found:
            continue
        base = "." if relative else f"{name}."
        if isinstance(node, ast.ImportFrom):
            if node.level:
                return None
            listed = ", ".join(map(ast.unparse, node.names))
            new = f"from {base}{node.module} import {listed}"
        elif len(node.names) > 1 or "." in node.names[0].name:
            return None
        else:
            new = f"from {'.' if relative else name} import {ast.unparse(node.names[0])}"
        edits.append((*held.span(node), new))
    return edited(held.text, edits)


def _offered(project: Project, rng: Random) -> Project | None:
    """Let the `__init__` of a package import what its modules define, and take it from there."""
    try:
        places = [
            t for t in taken(project) if _outside(project, t.path, t.source) and t.node.level == 0
        ]
        rng.shuffle(places)
        if not places and not any(path.endswith("__init__.py") for path in project.files):
            packed = _package(project, rng)
            return None if packed is None else _offered(packed, rng)
        for place in places:
            folder = PurePosixPath(place.source).parent
            init = str(folder / "__init__.py")
            names = sorted(set(place.names.values()))
            held = text(project.files[init])
            modules = {
                PurePosixPath(p).stem
                for p in project.files
                if str(PurePosixPath(p).parent) == str(folder)
            }
            if modules & set(names) or set(names) & held.scopes[0].bound:
                continue
            if _reaches(project, place.source, init):
                continue
            stem = PurePosixPath(place.source).stem
            line = rng.choice(
                (
                    f"from .{stem} import {', '.join(names)}",
                    f"from {dotted(init)}.{stem} import {', '.join(names)}",
                    f"from .{stem} import *",
                )
            )
            if line.endswith("*") and not _starred(project, place.source, held, modules, names):
                line = f"from .{stem} import {', '.join(names)}"
            offers = project.changed(
                init,
                project.files[init].rstrip("\n")
                + f"\n{line}\n".lstrip("\n" if not project.files[init].strip() else ""),
            )
            listed = ", ".join(map(ast.unparse, place.node.names))
            edits = [(*place.held.span(place.node), f"from {dotted(init)} import {listed}")]
            return offers.changed(place.path, edited(place.held.text, edits))
    except (Unsure, SyntaxError):
        return None
    return None


def _starred(
    project: Project, source: str, init: Text, modules: set[str], names: list[str]
) -> bool:
    bound = {n for n in text(project.files[source]).scopes[0].bound if not n.startswith("_")}
    return (
        not bound & (modules | init.scopes[0].bound)
        and set(names) <= bound
        and "__all__" not in project.files[source]
    )


def _outside(project: Project, path: str, source: str) -> bool:
    folder = PurePosixPath(source).parent
    return (
        not str(path).startswith(f"{folder}/")
        and str(folder / "__init__.py") in project.files
        and PurePosixPath(source).name != "__init__.py"
        and str(folder) != "."
    )


def _reaches(project: Project, start: str, end: str) -> bool:
    """Tell whether a file imports another one, directly or not, from which it would be imported."""
    seen, waiting = set[str](), [start]
    while waiting:
        path = waiting.pop()
        for i in imports(project, path, text(project.files[path]).tree):
            if i.path and i.path not in seen:
                seen.add(i.path)
                waiting.append(i.path)
    package = str(PurePosixPath(end).parent)
    outside = any(not p.startswith(f"{package}/") for p in seen)
    return end in seen or outside


REFACTORINGS = (
    Refactoring("modules go into a package", "files", _package),
    Refactoring("a package offers the names of its modules", "files", _offered),
)
