"""A module of the project goes into the file that imports it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from random import Random

from generated.refactor.code.identifiers import Edit, Text, Unsure, edited, text
from generated.refactor.code.importing import Import, absolute, imports
from generated.refactor.noise.spots import below_imports
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


def _apply(project: Project, rng: Random) -> Project | None:
    """Merge one file into another, or as many as can be."""
    every = rng.random() < 0.5
    changed, found = project, False
    for _ in range(len(project.files) - 1):
        after = _one(changed, rng)
        if after is None:
            break
        changed, found = after, True
        if not every:
            break
    return changed if found else None


def _one(project: Project, rng: Random) -> Project | None:
    paths = [p for p in project.files if p != project.entry and not p.endswith("__init__.py")]
    rng.shuffle(paths)
    try:
        for path in paths:
            readers = [p for p in project.files if _reads(project, p, path)]
            if len(readers) == 1 and readers[0] != path:
                changed = merged(project, path, readers[0])
                if changed is not None:
                    return changed
    except (Unsure, SyntaxError):
        return None
    return None


def _reads(project: Project, reader: str, path: str) -> list[Import]:
    return [i for i in imports(project, reader, text(project.files[reader]).tree) if i.path == path]


def merged(project: Project, path: str, into: str) -> Project | None:
    """Return the project with the code of a file in the one file that imports it; None where names would clash."""
    inner, outer = text(project.files[path]), text(project.files[into])
    found = _reads(project, into, path)
    nodes = list(dict.fromkeys(i.node for i in found))
    if any(
        n not in outer.tree.body or i.item == "*"
        for n, i in zip((i.node for i in found), found, strict=True)
    ):
        return None
    if any(i.path != path for n in nodes for i in imports(project, into, n)) or _asks(inner):
        return None
    if into.endswith("__init__.py") or "__all__" in outer.text:
        return None
    names = inner.scopes[0].bound
    own = {s.name for s in inner.tree.body if isinstance(s, ast.FunctionDef | ast.ClassDef)}
    edits: list[Edit] = []
    for i in found:
        changed = _renamed(outer, i, names)
        if changed is None:
            return None
        edits += changed
    locals_here = {i.alias.asname or i.alias.name for i in found}
    clash = names & (outer.scopes[0].bound - locals_here) - _same_imports(inner, outer)
    if clash or names & _unknown(outer) or _shadowed(outer, found, names):
        return None
    if own & {i.alias.asname for i in found if i.item and i.alias.asname != i.alias.name}:
        return None
    head, body = _body(inner, outer, path)
    for k, node in enumerate(nodes):
        stop = node.end_lineno or 0
        end = outer.lines[stop] if stop < len(outer.lines) else len(outer.text)
        edits.append((outer.lines[node.lineno - 1], end, head if k == 0 else ""))
    at = max(below_imports(outer), max(stop for start, stop, new in edits if new in (head, "")))
    edits.append((at, at, f"\n\n{body}\n" if body else ""))
    whole = _tidy(edited(outer.text, edits))
    files = {p: t for p, t in project.files.items() if p != path}
    return replace(project, files={**files, into: whole})


def _asks(inner: Text) -> bool:
    """Tell whether a file depends on where it stands, or on being imported."""
    if re.search(r"__name__|__file__|__all__|globals\(|from __future__", inner.text):
        return True
    return any(
        isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(inner.tree)
    )


def _same_imports(inner: Text, outer: Text) -> set[str]:
    """Return what both files import alike."""
    return {name for name, _ in _texts(inner) & _texts(outer)}


def _texts(held: Text) -> set[tuple[str, str]]:
    found = set()
    for node in held.tree.body:
        for inner in ast.walk(node) if isinstance(node, ast.Try) else [node]:
            if isinstance(inner, ast.Import):
                found |= {
                    ((a.asname or a.name).partition(".")[0], ast.unparse(a)) for a in inner.names
                }
            elif isinstance(inner, ast.ImportFrom) and not inner.level:
                found |= {
                    (a.asname or a.name, f"{inner.module} {ast.unparse(a)}") for a in inner.names
                }
    return found


def _unknown(outer: Text) -> set[str]:
    """Return the builtins that a file uses."""
    return {p.name for p in outer.places if p.kind == "name" and p.scope.home(p.name) is None}


def _shadowed(outer: Text, found: tuple[Import, ...] | list[Import], names: set[str]) -> bool:
    """Tell whether a function of the outer file has a local of a name that it would read from the inner one."""
    if all(i.item and (i.alias.asname in (None, i.item)) for i in found):
        return False
    return any(names & scope.bound for scope in outer.scopes[1:] if not scope.is_class)


def _renamed(outer: Text, found: Import, names: set[str]) -> list[Edit] | None:
    """Return the edits that name what was imported as it is called where it was defined."""
    local = found.alias.asname or found.alias.name
    module = outer.scopes[0]
    if found.item:
        if local == found.item:
            return [] if found.item in names else None
        uses = [
            p
            for p in outer.places
            if p.name == local and p.kind == "name" and p.scope.home(local) is module
        ]
        return [(p.start, p.start + len(local), found.item) for p in uses]
    edits: list[Edit] = []
    for node in ast.walk(outer.tree):
        if (
            isinstance(node, ast.Attribute)
            and ast.unparse(node.value) == local
            and node.attr in names
        ):
            start, stop = outer.span(node)
            if outer.text[start:stop] != f"{local}.{node.attr}" or isinstance(node.ctx, ast.Store):
                return None
            edits.append((start, stop, node.attr))
    first = local.partition(".")[0]
    uses = [
        p
        for p in outer.places
        if p.name == first and p.kind == "name" and p.scope.home(first) is module
    ]
    return edits if len(uses) == len(edits) else None


def _body(inner: Text, outer: Text, path: str) -> tuple[str, str]:
    """Return the imports of a file that the other file lacks, and its code without its docstring."""
    there = {ast.unparse(s) for s in outer.tree.body}
    start = below_imports(inner)
    edits: list[Edit] = []
    for k, statement in enumerate(inner.tree.body):
        again = (
            isinstance(statement, ast.Import | ast.ImportFrom | ast.Try)
            and ast.unparse(statement) in there
        )
        doc = (
            k == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        )
        stop = statement.end_lineno or 0
        end = inner.lines[stop] if stop < len(inner.lines) else len(inner.text)
        if again or doc:
            edits.append((inner.lines[statement.lineno - 1], end, ""))
        elif isinstance(statement, ast.ImportFrom) and statement.level:
            listed = ", ".join(map(ast.unparse, statement.names))
            edits.append(
                (*inner.span(statement), f"from {absolute(statement, path)} import {listed}")
            )
    head = edited(inner.text[:start], [e for e in edits if e[1] <= start]).strip("\n")
    body = edited(inner.text, [(0, start, ""), *(e for e in edits if e[1] > start)]).strip("\n")
    return f"{head}\n" if head else "", body


def _tidy(source: str) -> str:
    return re.sub(r"\n{4,}", "\n\n\n", source)


REFACTORINGS = (Refactoring("a module goes into the file that imports it", "files", _apply),)
