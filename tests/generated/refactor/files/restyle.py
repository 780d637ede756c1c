"""The same names from the same file by another import: a module's attribute, a star, inside functions, relative."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from random import Random

from generated.refactor.code.identifiers import Edit, Place, Text, Unsure, edited, text
from generated.refactor.code.importing import absolute, dotted, imports, own_modules
from generated.refactor.code.names import fresh
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

STYLES = ("module", "short", "star", "listed", "inside", "alias", "other")


@dataclass(frozen=True)
class Taken:
    """A statement at the level of a module that takes names from another file of the project."""

    path: str
    held: Text
    node: ast.ImportFrom
    source: str

    @property
    def names(self) -> dict[str, str]:
        """The names there by those here."""
        return {a.asname or a.name: a.name for a in self.node.names}

    def uses(self) -> list[Place]:
        """Return where the names are used."""
        module = self.held.scopes[0]
        return [
            p
            for p in self.held.places
            if p.name in self.names
            and p.kind in ("name", "declared")
            and p.scope.home(p.name) is module
        ]


def taken(project: Project) -> list[Taken]:
    """Return every such statement of a project."""
    found: list[Taken] = []
    for path in project.files:
        held = text(project.files[path])
        for node in held.tree.body:
            if isinstance(node, ast.ImportFrom) and all(a.name != "*" for a in node.names):
                from_here = [i for i in imports(project, path, node) if i.path and i.item]
                if len(from_here) == len(node.names) and from_here[0].path != path:
                    found.append(Taken(path, held, node, str(from_here[0].path)))
    return found


def _apply(project: Project, rng: Random, styles: tuple[str, ...]) -> Project | None:
    try:
        places = taken(project)
        rng.shuffle(places)
        for place in places:
            tried = list(styles)
            rng.shuffle(tried)
            for style in tried:
                changed = restyled(project, place, style, rng)
                if changed is not None:
                    return changed
    except (Unsure, SyntaxError):
        return None
    return None


def restyled(project: Project, place: Taken, style: str, rng: Random) -> Project | None:
    """Return the project with one import in another style, None where that would not mean the same."""
    if style == "other":
        return _other(project, place)
    if any(_takes(project, other, place) for other in project.files if other != place.path):
        return None
    if any(p.kind == "declared" or not _loaded(p) for p in place.uses()):
        return None
    makers = {
        "module": _module,
        "short": _module,
        "star": _star,
        "listed": _star,
        "inside": _inside,
        "alias": _alias,
    }
    return makers[style](project, place, style, rng)


def _takes(project: Project, other: str, place: Taken) -> bool:
    """Tell whether another file takes a name from here that this file itself takes."""
    held = text(project.files[other])
    return any(
        i.path == place.path and (i.item in ("", "*") or i.item in place.names)
        for i in imports(project, other, held.tree)
    )


def _loaded(place: Place) -> bool:
    return isinstance(place.node, ast.Name) and isinstance(place.node.ctx, ast.Load)


def _free(held: Text, name: str) -> bool:
    return not any(p.name == name and p.kind not in ("attribute", "keyword") for p in held.places)


def _module(project: Project, place: Taken, style: str, rng: Random) -> Project | None:
    """Take the module, and its names as attributes."""
    held, node = place.held, place.node
    spelt = "." * node.level + (node.module or "")
    parent, _, last = spelt.rpartition(".") if spelt.strip(".") else ("", "", "")
    if not last or PurePosixPath(place.source).name == "__init__.py":
        return None
    parent = spelt[: len(spelt) - len(last)]
    stem = rng.choice((last, last[0], "m", "lib")) if style == "short" else last
    prefix = stem if _free(held, stem) else fresh(project, rng, (f"{last}_module", "lib", "mod"))
    renamed = "" if prefix == last else f" as {prefix}"
    if not parent:
        statement = f"import {last}{renamed}"
    elif set(parent) == {"."}:
        statement = f"from {parent} import {last}{renamed}"
    elif not node.level and rng.random() < 0.5:
        statement = f"import {spelt} as {prefix}"
        if rng.random() < 0.5 and _free(held, spelt.partition(".")[0]):
            statement, prefix = f"import {spelt}", spelt
    else:
        statement = f"from {parent.removesuffix('.')} import {last}{renamed}"
        if last in _bound(project, _package_of(project, place)):
            return None
    edits: list[Edit] = [(*held.span(node), statement)]
    edits += [
        (p.start, p.start + len(p.name), f"{prefix}.{place.names[p.name]}") for p in place.uses()
    ]
    return project.changed(place.path, edited(held.text, edits))


def _package_of(project: Project, place: Taken) -> str:
    return str(PurePosixPath(place.source).parent / "__init__.py")


def _bound(project: Project, path: str) -> set[str]:
    return set(text(project.files[path]).scopes[0].bound) if path in project.files else set()


def _star(project: Project, place: Taken, style: str, rng: Random) -> Project | None:
    """Take every name that the module has, or that it lists."""
    source = text(project.files[place.source])
    if any(local != name or name.startswith("_") for local, name in place.names.items()):
        return None
    if "__all__" in source.text or _stars(project, place.source):
        return None
    if style == "star" and _clashes(place.held, source, set(place.names), place.node):
        return None
    spelt = "." * place.node.level + (place.node.module or "")
    edits: list[Edit] = [(*place.held.span(place.node), f"from {spelt} import *")]
    changed = project.changed(place.path, edited(place.held.text, edits))
    if style == "star":
        return changed
    listed = ", ".join(f'"{name}"' for name in sorted(place.names))
    from generated.refactor.noise.spots import below_imports

    at = below_imports(source)
    return changed.changed(
        place.source,
        edited(source.text, [(at, at, ("\n" if at else "") + f"__all__ = [{listed}]\n")]),
    )


def _stars(project: Project, path: str) -> bool:
    return any(
        i.path == path and i.item == "*"
        for other in project.files
        for i in imports(project, other, text(project.files[other]).tree)
    )


def _clashes(held: Text, source: Text, wanted: set[str], node: ast.ImportFrom) -> bool:
    """Tell whether a star brings more than it should: a name of the file, or one of Python."""
    brought = {n for n in source.scopes[0].bound if not n.startswith("_")} - wanted
    module = held.scopes[0]
    if brought & set(dir(builtins)):
        return True
    same = _import_texts(held) & _import_texts(source)
    for name in brought & module.bound:
        if not any(name == bound for bound, _ in same):
            return True
    unknown = {p.name for p in held.places if p.kind == "name" and p.scope.home(p.name) is None}
    return bool(brought & unknown) or any(isinstance(n, ast.Try) for n in source.tree.body)


def _import_texts(held: Text) -> set[tuple[str, str]]:
    found = set()
    for node in held.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            where = (
                ast.unparse(node).partition(" import ")[0]
                if isinstance(node, ast.ImportFrom)
                else ""
            )
            if not getattr(node, "level", 0):
                found |= {
                    ((a.asname or a.name).partition(".")[0], f"{where} {ast.unparse(a)}")
                    for a in node.names
                }
    return found


def _inside(project: Project, place: Taken, style: str, rng: Random) -> Project | None:
    """Import inside of the functions that use the names."""
    held, node = place.held, place.node
    needed: dict[ast.AST, set[str]] = {}
    for use in place.uses():
        scope, function = use.scope, None
        while scope is not None:
            if isinstance(scope.node, ast.FunctionDef):
                function = scope.node
            scope = scope.parent  # type: ignore[assignment]
        if function is None or not _within(held, function, use):
            return None
        needed.setdefault(function, set()).add(use.name)
    if not needed:
        return None
    spelt = "." * node.level + (node.module or "")
    edits: list[Edit] = [(*_lines(held, node), "")]
    for function, names in needed.items():
        assert isinstance(function, ast.FunctionDef)
        body = function.body
        first = body[1] if ast.get_docstring(function) is not None and len(body) > 1 else body[0]
        start = held.span(first)[0]
        line = held.lines[first.lineno - 1]
        if isinstance(first, ast.FunctionDef | ast.ClassDef) and first.decorator_list:
            line = held.lines[first.decorator_list[0].lineno - 1]
            start = line + first.col_offset
        if held.text[line:start].strip():
            return None
        listed = ", ".join(
            n if n == place.names[n] else f"{place.names[n]} as {n}" for n in sorted(names)
        )
        edits.append((line, line, f"{' ' * first.col_offset}from {spelt} import {listed}\n"))
    return project.changed(place.path, edited(held.text, edits))


def _within(held: Text, function: ast.FunctionDef, use: Place) -> bool:
    """Tell whether a use is in the body of a function, not in its decorators or defaults."""
    return held.span(function.body[0])[0] <= use.start < held.span(function)[1]


def _lines(held: Text, node: ast.stmt) -> tuple[int, int]:
    stop = node.end_lineno or 0
    return held.lines[node.lineno - 1], held.lines[stop] if stop < len(held.lines) else len(
        held.text
    )


def _alias(project: Project, place: Taken, style: str, rng: Random) -> Project | None:
    """Give one of the names another name here."""
    local = rng.choice(sorted(place.names))
    name = place.names[local]
    new = fresh(project, rng, (f"_{name}", f"{name}_fn", f"base_{name.lower()}", name[0]))
    spelt = "." * place.node.level + (place.node.module or "")
    listed = [
        f"{a.name} as {new}" if (a.asname or a.name) == local else ast.unparse(a)
        for a in place.node.names
    ]
    edits: list[Edit] = [(*place.held.span(place.node), f"from {spelt} import {', '.join(listed)}")]
    edits += [(p.start, p.start + len(local), new) for p in place.uses() if p.name == local]
    return project.changed(place.path, edited(place.held.text, edits))


def _other(project: Project, place: Taken) -> Project | None:
    """Make a relative import absolute, or an absolute one relative."""
    inside = list(PurePosixPath(place.path).parts[:-1])
    if not inside or place.path == project.entry or not _package(project, place.path):
        return None
    if place.node.level:
        spelt = absolute(place.node, place.path)
        if own_modules(project).get(spelt) != place.source or not spelt:
            return None
    else:
        there = dotted(place.source).split(".")
        shared = 0
        while shared < min(len(inside), len(there) - 1) and inside[shared] == there[shared]:
            shared += 1
        if not shared:
            return None
        spelt = "." * (len(inside) - shared + 1) + ".".join(there[shared:])
    listed = ", ".join(ast.unparse(a) for a in place.node.names)
    edits = [(*place.held.span(place.node), f"from {spelt} import {listed}")]
    return project.changed(place.path, edited(place.held.text, edits))


def _package(project: Project, path: str) -> bool:
    """Tell whether a file is imported as part of packages, from the root on."""
    parents = list(PurePosixPath(path).parents)[:-1]
    return not project.entry.startswith(f"{parents[-1]}/") and all(
        str(parent / "__init__.py") in project.files for parent in parents
    )


def _refactoring(name: str, *styles: str) -> Refactoring:
    def apply(project: Project, rng: Random) -> Project | None:
        return _apply(project, rng, styles)

    return Refactoring(name, "files", apply)


def every(project: Project) -> Iterator[Taken]:
    """Yield the imports between files; none where a file cannot be read."""
    try:
        yield from taken(project)
    except (Unsure, SyntaxError):
        return


REFACTORINGS = (
    _refactoring("an import takes the module", "module", "short"),
    _refactoring("an import takes everything", "star", "listed"),
    _refactoring("an import goes into the functions", "inside"),
    _refactoring("an import is spelt otherwise", "alias", "other"),
)
