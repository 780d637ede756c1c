"""Code that moves into a new file: what it needs there, and what the old file no longer needs."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from random import Random

from generated.refactor.code.names import fresh
from generated.refactor.code.source import Edit, Source, imported, source
from generated.refactor.code.variables import scopes
from generated.refactor.project import Project


def beside(
    project: Project, rng: Random, path: str, stems: Sequence[str]
) -> tuple[str, str] | None:
    """Return a new path in the folder of a file, and how that file imports from it."""
    stem = fresh(project, rng, stems)
    folder, entry = path.rpartition("/")[0], project.entry.rpartition("/")[0]
    where = f"{folder}/{stem}.py" if folder else f"{stem}.py"
    if where in project.files:
        return None
    if folder == entry:
        return where, stem
    if f"{folder}/__init__.py" in project.files and path != project.entry:
        return where, f".{stem}"
    return None


def globals_of(src: Source, nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names of the module that code reads, builtins not among them."""
    every, found = scopes(src), set()
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                variable = every.of[inner]
                if variable.scope is every.module and (
                    variable.binders or variable.stores or not hasattr(builtins, inner.id)
                ):
                    found.add(inner.id)
            elif isinstance(inner, ast.Global):
                found |= set(inner.names) | {"*"}
    return found


@lru_cache(maxsize=256)
def importing(src: Source) -> dict[str, ast.stmt]:
    """Return the statement at the head of a file that imports each name, guarded or not."""
    found: dict[str, ast.stmt] = {}
    for statement in src.tree.body:
        plain = isinstance(statement, ast.Import | ast.ImportFrom)
        guarded = isinstance(statement, ast.Try) and any(
            isinstance(n, ast.Import | ast.ImportFrom) for n in statement.body
        )
        if not plain and not guarded:
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    found[(alias.asname or alias.name).partition(".")[0]] = statement
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found[node.id] = statement
    return found


def imports_for(project: Project, path: str, src: Source, names: set[str]) -> str | None:
    """Return the imports that names need in a new file, or None where one is something else."""
    known = importing(src)
    if not names <= set(known) or _shared(project, path, names):
        return None
    wanted = []
    for statement in src.tree.body:
        mine = sorted(n for n in names if known.get(n) is statement)
        if not mine:
            continue
        if isinstance(statement, ast.ImportFrom) and all(a.name != "*" for a in statement.names):
            kept = [a for a in statement.names if (a.asname or a.name) in mine]
            module = "." * statement.level + (statement.module or "")
            wanted.append(f"from {module} import {', '.join(map(ast.unparse, kept))}\n")
        elif isinstance(statement, ast.Import):
            kept = [a for a in statement.names if (a.asname or a.name).partition(".")[0] in mine]
            wanted += [f"import {ast.unparse(a)}\n" for a in kept]
        else:
            wanted.append(src.code(statement) + "\n")
    return "".join(wanted)


def _shared(project: Project, path: str, names: set[str]) -> bool:
    """Tell whether another file takes one of these names from this one."""
    stem = path.removesuffix("/__init__.py").removesuffix(".py").rpartition("/")[2]
    for other, text in project.files.items():
        if other == path or stem not in text:
            continue
        for line in re.findall(rf"^.*\b{re.escape(stem)}\b.*$", text, re.M):
            if "import *" in line or any(re.search(rf"\b{n}\b", line) for n in names):
                return True
        if any(re.search(rf"\b{re.escape(stem)}\.{n}\b", text) for n in names):
            return True
    return False


def pruned(text: str, names: set[str]) -> str | None:
    """Return the text without the imports of names that nothing uses any more."""
    src = source(text)
    known, used = importing(src), _used(src)
    edits = []
    for statement in dict.fromkeys(s for n, s in known.items() if n in names):
        mine = {n for n, s in known.items() if s is statement}
        idle = mine - used
        if not idle or not src.alone([statement]):
            continue
        if idle == mine:
            edits.append(Edit(src.above(statement), src.below(statement), ""))
        elif isinstance(statement, ast.ImportFrom):
            kept = [a for a in statement.names if (a.asname or a.name) not in idle]
            module = "." * statement.level + (statement.module or "")
            line = f"from {module} import {', '.join(map(ast.unparse, kept))}"
            edits.append(Edit(*src.span(statement), line))
    return src.edited(edits)


def _used(src: Source) -> set[str]:
    """Return the names that are read anywhere but in the guards that import them."""
    guards = {id(n) for s in importing(src).values() for n in ast.walk(s)}
    found = {n.id for n in ast.walk(src.tree) if isinstance(n, ast.Name) and id(n) not in guards}
    listed = re.search(r"^__all__", src.text, re.M)
    return found | (set(importing(src)) if listed else set())


def split(
    project: Project,
    path: str,
    where: tuple[str, str],
    names: set[str],
    moved: str,
    changed: str,
    takes: str,
) -> Project | None:
    """Return the project with code in a new file, imported by the old one under the name it takes."""
    src = source(project.files[path])
    head = imports_for(project, path, src, names)
    if head is None:
        return None
    rest = pruned(changed, names)
    if rest is None:
        return None
    again = source(rest)
    final = again.edited(imported(again, f"from {where[1]} import {takes}"))
    if final is None:
        return None
    gap = "\n\n" if head else ""
    return project.changed(path, final).changed(where[0], f"{head}{gap}{moved.strip()}\n")
