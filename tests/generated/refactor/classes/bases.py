"""Moves methods and constructors to a base class or a mixin, in the same file or in another."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from random import Random

from generated.refactor.code.calls import body, classes, dynamic
from generated.refactor.code.modules import beside, globals_of, split
from generated.refactor.code.names import fresh
from generated.refactor.code.source import Edit, Source, drawn, first, sources
from generated.refactor.code.variables import all_parameters, scopes
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_PLAIN = ("property", "staticmethod", "classmethod", "torch.no_grad()", "no_grad()")


def movable(src: Source, klass: ast.ClassDef, method: ast.stmt) -> bool:
    """Tell whether a method means the same in a base class."""
    if not isinstance(method, ast.FunctionDef) or not src.alone([method]):
        return False
    if any(src.code(d) not in _PLAIN for d in method.decorator_list):
        return False
    same = [n for n in klass.body if getattr(n, "name", "") == method.name]
    text = src.code(method)
    if len(same) > 1 or "super(" in text or "__class__" in text:
        return False
    if re.search(r"\b__\w*[^_\W]\b(?!__)", text.replace("__init__", "")):
        return False
    inner = scopes(src).by_node[klass].variables
    outside = {n.id for n in ast.walk(method.args) if isinstance(n, ast.Name)}
    return not outside & set(inner)


def usual(klass: ast.ClassDef) -> bool:
    """Tell whether a class is built the usual way."""
    return not klass.keywords and not klass.decorator_list and "Enum" not in ast.unparse(klass)


def network(klass: ast.ClassDef) -> bool:
    """Tell whether a class is a network."""
    return any("Module" in ast.unparse(base) for base in klass.bases)


def _moving(kind: str, elsewhere: bool) -> Callable[[Project, Random], Project | None]:
    def apply(project: Project, rng: Random) -> Project | None:
        if "__slots__" in project.text or "__subclasses__" in project.text:
            return None
        places = []
        networks = rng.random() < 0.12
        for path, src in sources(project).items():
            for klass in classes(src):
                found = [m for m in klass.body if movable(src, klass, m)]
                if kind == "mixin":
                    found = [m for m in found if getattr(m, "name", "") != "__init__"]
                if network(klass) and not networks:
                    continue
                if found and usual(klass) and klass.body[0].lineno != klass.lineno:
                    places.append((1 + src.weight(_nodes(found)), (path, src, klass, found)))
        return first(drawn(rng, places), lambda place: _move(project, rng, kind, elsewhere, *place))

    return apply


def _nodes(methods: Sequence[ast.AST]) -> list[ast.AST]:
    return [n for m in methods for n in ast.walk(m)]


def _move(
    project: Project,
    rng: Random,
    kind: str,
    elsewhere: bool,
    path: str,
    src: Source,
    klass: ast.ClassDef,
    found: list[ast.stmt],
) -> Project | None:
    weights = [(1.0 + src.weight(ast.walk(m)), m) for m in found]
    count = rng.choice([1, 1, 2, 3, len(found)])
    chosen = sorted(list(drawn(rng, weights))[:count], key=lambda m: m.lineno)
    stems = (
        (f"{klass.name}Base", f"Base{klass.name}", "Core")
        if kind == "base"
        else (f"{klass.name}Mixin", "StepMixin", "TrainingMixin")
    )
    name = fresh(project, rng, stems)
    bases = [src.code(b) for b in klass.bases if ast.unparse(b) != "object"]
    unit = src.unit
    parts = [_text(src, m) for m in chosen]
    head = f"class {name}({', '.join(bases)}):" if kind == "base" and bases else f"class {name}:"
    moved = f"{head}\n" + "\n".join(parts)
    edits = [removed(src, klass, m) for m in chosen]
    new = [name] if kind == "base" else [name, *bases]
    edits.append(header(src, klass, new))
    rest = [n for n in klass.body if n not in chosen]
    if not rest:
        at = src.below(klass)
        edits = [e for e in edits if e.start < src.above(chosen[0])]
        start = src.above(chosen[0])
        edits.append(Edit(start, at, f"{unit}pass\n"))
    if not elsewhere:
        at = src.above(klass)
        text = src.edited([*edits, Edit(at, at, f"{moved.rstrip()}\n\n\n")])
        return None if text is None else project.changed(path, text)
    where = beside(project, rng, path, ("base", "mixins", "common", "core"))
    names = globals_of(src, [*chosen, *(klass.bases if kind == "base" else [])])
    changed = src.edited(edits)
    if where is None or changed is None:
        return None
    return split(project, path, where, names, moved, changed, name)


def _text(src: Source, method: ast.stmt) -> str:
    start, stop = src.lines([method])
    return src.text[start:stop]


def removed(src: Source, klass: ast.ClassDef, method: ast.stmt) -> Edit:
    """Return the edit that takes a method out, with the blank lines above it."""
    start, stop = src.lines([method])
    before = src.text[:start]
    bare = before.rstrip(" \t\n")
    if klass.body[0] is method:
        blank = re.match(r"([ \t]*\n)*", src.text[stop:])
        return Edit(
            start, stop + (blank.end() if blank and method is not klass.body[-1] else 0), ""
        )
    return Edit(len(bare) + 1, stop, "")


def header(src: Source, klass: ast.ClassDef, bases: Sequence[str]) -> Edit:
    """Return the edit that gives a class other bases."""
    start = src.span(klass)[0]
    found = re.compile(rf"class\s+{klass.name}\s*(\([^:]*\))?\s*:").match(src.text, start)
    assert found is not None
    return Edit(found.start(), found.end(), f"class {klass.name}({', '.join(bases)}):")


def _constructor(project: Project, rng: Random) -> Project | None:
    """Move the first statements of a constructor into that of a new base class."""
    if dynamic(project) or "__slots__" in project.text:
        return None
    places = []
    for path, src in sources(project).items():
        for klass in classes(src):
            if klass.bases or not usual(klass) or klass.body[0].lineno == klass.lineno:
                continue
            for method in klass.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    if movable(src, klass, method) and body(method)[0].lineno != method.lineno:
                        places.append(
                            (1 + src.weight(ast.walk(method)), (path, src, klass, method))
                        )
    return first(drawn(rng, places), lambda place: _halved(project, rng, *place))


def _halved(
    project: Project,
    rng: Random,
    path: str,
    src: Source,
    klass: ast.ClassDef,
    method: ast.FunctionDef,
) -> Project | None:
    statements = body(method)
    if len(statements) < 2 or method.args.vararg or method.args.kwarg or method.args.kwonlyargs:
        return None
    cuts = list(range(1, len(statements)))
    rng.shuffle(cuts)
    for cut in cuts:
        head, tail = statements[:cut], statements[cut:]
        own = {n.id for s in head for n in ast.walk(s) if isinstance(n, ast.Name)}
        bound = {
            n.id
            for s in head
            for n in ast.walk(s)
            if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
        }
        read = {n.id for s in tail for n in ast.walk(s) if isinstance(n, ast.Name)}
        kinds = ast.Return | ast.Import | ast.ImportFrom | ast.FunctionDef | ast.Global
        if bound & read or any(isinstance(n, kinds) for s in head for n in ast.walk(s)):
            continue
        if not src.alone(head):
            continue
        return _two(project, rng, path, src, klass, method, head, own)
    return None


def _two(
    project: Project,
    rng: Random,
    path: str,
    src: Source,
    klass: ast.ClassDef,
    method: ast.FunctionDef,
    head: list[ast.stmt],
    own: set[str],
) -> Project | None:
    parameters = [p.arg for p in all_parameters(method)]
    if not parameters or parameters[0] != "self":
        return None
    needed = [p for p in parameters[1:] if p in own]
    name = fresh(project, rng, (f"{klass.name}Base", f"Base{klass.name}", "Holder"))
    outer, inner = src.indent(method), src.indent(head[0])
    start, stop = src.lines(head)
    signature = ", ".join(["self", *needed])
    moved = f"class {name}:\n{outer}def __init__({signature}):\n{src.text[start:stop]}"
    call = f"{inner}super().__init__({', '.join(needed)})\n"
    edits = [Edit(start, stop, call), header(src, klass, [name])]
    if rng.random() < 0.5:
        at = src.above(klass)
        text = src.edited([*edits, Edit(at, at, f"{moved}\n\n")])
        return None if text is None else project.changed(path, text)
    where = beside(project, rng, path, ("base", "holders", "common", "core"))
    changed = src.edited(edits)
    if where is None or changed is None:
        return None
    return split(project, path, where, globals_of(src, head), moved, changed, name)


REFACTORINGS = (
    Refactoring("methods move to a base class", "classes", _moving("base", False)),
    Refactoring("methods move to a mixin", "classes", _moving("mixin", False)),
    Refactoring("methods move to a base class of another file", "classes", _moving("base", True)),
    Refactoring("methods move to a mixin of another file", "classes", _moving("mixin", True)),
    Refactoring("a constructor is shared with a base class", "classes", _constructor),
)
