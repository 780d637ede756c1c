"""Moves the code of a script into a `main` function, and that of a `main` function out of it."""

from __future__ import annotations

import ast
import re
from random import Random

import libcst as cst

from generated.refactor.code.blocks import escapes, parsed
from generated.refactor.code.names import bound, code, declared, fresh, read, tree
from generated.refactor.code.scopes import FRAME, captured, declared_anywhere, in_order, parameters
from generated.refactor.code.writing import function, gap
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

GUARD = 'if __name__ == "__main__":'


def _into(project: Project, rng: Random) -> Project | None:
    """Take the last statements of the script that define nothing; what functions read of them stays global."""
    module, path = project.module(project.entry), project.entry
    if _taken(project):
        return None
    guard = module.body[-1]
    guarded = isinstance(guard, cst.If) and "__name__" in read(guard.test)
    if guarded:
        assert isinstance(guard, cst.If)
        run, start = list(guard.body.body), len(module.body) - 1
        if guard.orelse is not None:
            return None
    else:
        start = next(
            (k + 1 for k in range(len(module.body) - 1, -1, -1) if _stays(module.body[k])), 0
        )
        start += rng.choice((0, 0, 0, 1)) if start + 4 < len(module.body) else 0
        run = list(module.body[start:])
    if len(run) < 3 or escapes(run) or read(run) & FRAME or _has_star(run):
        return None
    head = list(module.body[:start])
    gives = bound(run)
    shared = gives & (captured(module.body) | bound(head) | declared_anywhere(module))
    if shared & bound([s for s in module.body if isinstance(s, cst.FunctionDef | cst.ClassDef)]):
        return None
    name = "main" if "main" not in project.text else fresh(project, rng, ("main", "run", "cli"))
    line = f"global {', '.join(sorted(shared, key=in_order(run)))}\n" if shared else ""
    body = [*parsed(line, module), *run]
    if line:
        body[1] = gap(body[1], 0)
    unit = module.default_indent
    made = gap(function(module, name, (), body), 2 if start else 0)
    text = f"{GUARD}\n{unit}{name}()\n" if guarded or rng.random() < 0.8 else f"{name}()\n"
    (call,) = parsed(text, module)
    changed = module.with_changes(body=[*head, made, gap(call, 2)])
    return project.changed(path, changed)


def _stays(node: cst.CSTNode) -> bool:
    kinds = ast.Import | ast.ImportFrom
    if isinstance(node, cst.FunctionDef | cst.ClassDef):
        return True
    return any(isinstance(n, kinds) for n in ast.walk(tree(node)))


def _has_star(run: list[cst.BaseStatement]) -> bool:
    return any(
        isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(tree(run))
    )


def _taken(project: Project) -> bool:
    """Tell whether another file imports the script."""
    stem = project.entry.removesuffix(".py").rpartition("/")[2]
    others = (text for path, text in project.files.items() if path != project.entry)
    return any(
        re.search(r"^.*\bimport\b.*$", text, re.M) and _imports(text, stem) for text in others
    )


def _imports(text: str, stem: str) -> bool:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names = {(node.module or "").rpartition(".")[2], *(a.name for a in node.names)}
        elif isinstance(node, ast.Import):
            names = {a.name.rpartition(".")[2] for a in node.names}
        else:
            continue
        if stem in names:
            return True
    return False


def _out(project: Project, rng: Random) -> Project | None:
    """Take a function that the script calls once, without arguments or results; its variables become global."""
    module = project.module(project.entry)
    if _taken(project):
        return None
    found = _called_once(module)
    if found is None:
        return None
    main, guarded = found
    body = list(main.body.body)
    if escapes(body) or declared_anywhere(module) or read(body) & FRAME or parameters(main):
        return None
    others = [node for node in module.body if node is not main]
    inner = bound(body)
    own = captured(others)
    if inner & (bound(others) | own):
        return None
    last = module.body[-1]
    if isinstance(body[0], cst.SimpleStatementLine) and isinstance(body[0].body[0], cst.Expr):
        if isinstance(body[0].body[0].value, cst.SimpleString):
            body = body[1:]
    if not body:
        return None
    rest = [node for node in module.body[:-1] if node is not main]
    if guarded and rng.random() < 0.4:
        assert isinstance(last, cst.If)
        inside = last.with_changes(body=last.body.with_changes(body=[gap(body[0], 0), *body[1:]]))
        return project.changed(project.entry, module.with_changes(body=[*rest, inside]))
    first = gap(body[0], 2 if rest else 0)
    return project.changed(project.entry, module.with_changes(body=[*rest, first, *body[1:]]))


def _called_once(module: cst.Module) -> tuple[cst.FunctionDef, bool] | None:
    """Return the function that the last statement of a script calls, and whether a guard stands around."""
    last = module.body[-1]
    guarded = isinstance(last, cst.If) and "__name__" in read(last.test)
    text = code(last).strip()
    if guarded:
        assert isinstance(last, cst.If)
        if last.orelse is not None or len(last.body.body) != 1:
            return None
        text = code(last.body).strip()
    if not re.fullmatch(r"\w+\(\)", text):
        return None
    name = text[:-2]
    every = [n.id for n in ast.walk(tree(module)) if isinstance(n, ast.Name)]
    mains = [
        node
        for node in module.body
        if isinstance(node, cst.FunctionDef) and node.name.value == name and not node.decorators
    ]
    if len(mains) != 1 or every.count(name) != 1 or declared(mains[0].body.body):
        return None
    return mains[0], guarded


REFACTORINGS = (
    Refactoring("the code of a script becomes a main function", "order", _into),
    Refactoring("a main function becomes the code of its script", "order", _out),
)
