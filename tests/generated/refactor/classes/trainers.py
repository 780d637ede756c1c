"""Makes a class of a training function: its variables become attributes, its parts methods."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from random import Random

from generated.refactor.code.calls import body, dynamic, generator
from generated.refactor.code.names import fresh
from generated.refactor.code.signatures import Called, called
from generated.refactor.code.source import Edit, Source, drawn, first, indented
from generated.refactor.code.variables import Variable, scopes
from generated.refactor.places.containers import movable
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_PARTS = (
    ("fit",),
    ("setup", "fit"),
    ("prepare", "run_epochs"),
    ("setup", "fit", "finish"),
    ("build", "loop", "report"),
)


def _apply(project: Project, rng: Random) -> Project | None:
    """Draw a function without a result of its own, whose variables can be attributes."""
    if dynamic(project):
        return None
    places = []
    for function in called(project):
        if _usable(function):
            weight = 1 + function.src.weight(ast.walk(function.node))
            places.append((weight, function))
    return first(drawn(rng, places), lambda function: _object(project, rng, function))


def _usable(function: Called) -> bool:
    node, src = function.node, function.src
    statements = body(node)
    if generator(node) or statements[0].lineno == node.lineno or not src.alone(statements):
        return False
    kinds = ast.Global | ast.Nonlocal | ast.FunctionDef | ast.ClassDef | ast.Lambda
    if any(isinstance(n, kinds) for n in ast.walk(node) if n is not node):
        return False
    if "self" in re.findall(r"\w+", src.code(node)):
        return False
    returns = [n for n in ast.walk(node) if isinstance(n, ast.Return)]
    last = statements[-1]
    return all(r is last for r in returns)


def _object(project: Project, rng: Random, function: Called) -> Project | None:
    src, node = function.src, function.node
    statements = body(node)
    variables = [v for v in scopes(src).by_node[node].variables.values() if v.every or v.parameter]
    parts = rng.choice(_PARTS)
    if len(statements) < len(parts):
        parts = parts[:1]
    cuts = sorted(rng.sample(range(1, len(statements)), len(parts) - 1)) if len(parts) > 1 else []
    pieces = [statements[a:b] for a, b in zip([0, *cuts], [*cuts, len(statements)], strict=True)]
    moved = _attributes(src, rng, variables, pieces)
    if moved is None:
        return None
    names = {v.name for v in moved}
    kind = fresh(project, rng, ("Training", "Trainer", "Run", "Session", "Learner"))
    if names & {*parts, "run", "__init__"}:
        return None
    edits = [Edit(*src.span(n), f"self.{v.name}") for v in moved for n in v.every]
    texts = [_text(src, piece, edits) for piece in pieces]
    if any(t is None for t in texts):
        return None
    text = _class(src, function, kind, parts, [t or "" for t in texts])
    if rng.random() < 0.5:
        return _beside(project, function, kind, parts, text)
    return _instead(project, function, kind, parts, text)


def _attributes(
    src: Source, rng: Random, variables: Sequence[Variable], pieces: Sequence[Sequence[ast.stmt]]
) -> list[Variable] | None:
    """Return the variables that become attributes: parameters, what crosses methods, and some others."""
    inside = [{id(n) for s in piece for n in ast.walk(s)} for piece in pieces]
    all_of_them = rng.random() < 0.5
    moved = []
    for variable in variables:
        known = [*variable.every, *variable.binders]
        used = [ids for ids in inside if any(id(n) in ids for n in known)]
        must = variable.parameter is not None or len(used) > 1
        others = any(not isinstance(b, ast.arg) for b in variable.binders)
        if must and (variable.every and not movable(src, variable)):
            return None
        if others and len(used) > 1:
            return None
        if must or (all_of_them and movable(src, variable)):
            moved.append(variable)
    return moved


def _text(src: Source, piece: Sequence[ast.stmt], edits: Sequence[Edit]) -> str | None:
    start, stop = src.lines(piece)
    return src.moved(start, stop, edits)


def _class(
    src: Source, function: Called, kind: str, parts: Sequence[str], texts: Sequence[str]
) -> str:
    """Return the class; a function of a module is one level further left than a method."""
    node, unit = function.node, src.unit
    fields = "".join(f"{unit * 2}self.{p} = {p}\n" for p in function.parameters)
    rows = f"class {kind}:\n"
    doc = ast.get_docstring(node, clean=False)
    if doc is not None and "\n" not in doc:
        rows += f'{unit}"""{doc}"""\n\n'
    if fields:
        a, b = _signature(src, node)
        rows += f"{unit}def __init__(self, {src.text[a:b]}):\n{fields}\n"
    methods = [
        f"{unit}def {name}(self):\n{indented(text.rstrip() + chr(10), unit)}"
        for name, text in zip(parts, texts, strict=True)
    ]
    if len(parts) > 1:
        returns = any(isinstance(n, ast.Return) and n.value for n in ast.walk(node))
        calls = [f"{unit * 2}self.{name}()\n" for name in parts]
        if returns:
            calls[-1] = f"{unit * 2}return self.{parts[-1]}()\n"
        methods.append(f"{unit}def run(self):\n{''.join(calls)}")
    return rows + "\n".join(methods)


def _signature(src: Source, node: ast.FunctionDef) -> tuple[int, int]:
    a = node.args
    every = [*a.args, *a.kwonlyargs, *a.defaults, *filter(None, a.kw_defaults)]
    start = min(src.span(n)[0] for n in every)
    if a.kwonlyargs and not a.args:
        start = src.text.rindex("*", 0, start)
    return start, max(src.span(n)[1] for n in every)


def _beside(
    project: Project, function: Called, kind: str, parts: Sequence[str], text: str
) -> Project | None:
    """Let the function make the object and run it."""
    src, node = function.src, function.node
    start, stop = src.lines(body(node))
    positional = [p.arg for p in node.args.args]
    given = [*positional, *(f"{p.arg}={p.arg}" for p in node.args.kwonlyargs)]
    run = "run" if len(parts) > 1 else parts[0]
    returns = any(isinstance(n, ast.Return) and n.value for n in ast.walk(node))
    line = f"{kind}({', '.join(given)}).{run}()"
    above = src.above(node)
    inner = src.indent(body(node)[0])
    edits = [
        Edit(above, above, f"{text}\n\n"),
        Edit(start, stop, f"{inner}{'return ' if returns else ''}{line}\n"),
    ]
    changed = src.edited(edits)
    return None if changed is None else project.changed(function.path, changed)


def _instead(
    project: Project, function: Called, kind: str, parts: Sequence[str], text: str
) -> Project | None:
    """Let the callers make the object and run it."""
    src, node = function.src, function.node
    if any(call.path != function.path for call in function.calls):
        return _beside(project, function, kind, parts, text)
    start, stop = src.span(node)[0], src.below(node)
    run = "run" if len(parts) > 1 else parts[0]
    edits = [Edit(start, stop, text)]
    for call in function.calls:
        if start <= src.span(call.node)[0] < stop:
            return None
        edits.append(Edit(*src.span(call.node.func), kind))
        end = src.span(call.node)[1]
        edits.append(Edit(end, end, f".{run}()"))
    changed = src.edited(edits)
    return None if changed is None else project.changed(function.path, changed)


REFACTORINGS = (Refactoring("a function becomes a class with methods", "classes", _apply),)
