"""Hands a container to a function in place of its parts."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from generated.refactor.code.calls import body, dynamic
from generated.refactor.code.names import fresh
from generated.refactor.code.signatures import Call, Called, called, simple
from generated.refactor.code.source import Edit, Function, Source, drawn, first, imported
from generated.refactor.code.variables import Variable, scopes
from generated.refactor.places.containers import movable, outermost, replaced
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_STATEMENTS = ast.Expr | ast.Assign | ast.Return


@dataclass(frozen=True)
class Shape:
    """How a container is written at a call and read in the function."""

    made: Callable[[list[tuple[str, str]]], str]
    spell: Callable[[str, list[str]], str]
    needs: tuple[str, ...] = ()
    header: str = ""


def _shape(project: Project, rng: Random, function: Called, chosen: list[str], word: str) -> Shape:
    kinds = ["namespace", "dict", "list", "tuple"]
    if all(call.path == function.path for call in function.calls):
        kinds += ["dataclass", "namedtuple"]
    kind = rng.choice(kinds)
    if kind == "dict":
        return Shape(
            lambda pairs: "{" + ", ".join(f'"{k}": {v}' for k, v in pairs) + "}",
            lambda name, _: f'{word}["{name}"]',
        )
    if kind in ("list", "tuple"):
        left, right = "[]" if kind == "list" else "()"
        return Shape(
            lambda pairs: left + ", ".join(v for _, v in pairs) + right,
            lambda name, names: f"{word}[{names.index(name)}]",
        )
    if kind == "namespace":
        return Shape(
            lambda pairs: f"SimpleNamespace({', '.join(f'{k}={v}' for k, v in pairs)})",
            lambda name, _: f"{word}.{name}",
            ("from types import SimpleNamespace",),
        )
    made = fresh(project, rng, ("Parts", "Context", "Batch", "Bundle"))
    unit = function.src.unit
    if kind == "dataclass":
        fields = "".join(f"{unit}{name}: object\n" for name in chosen)
        header, need = (
            f"@dataclass\nclass {made}:\n{fields}\n\n",
            "from dataclasses import dataclass",
        )
    else:
        names = ", ".join(f'"{name}"' for name in chosen)
        header = f'{made} = namedtuple("{made}", [{names}])\n\n\n'
        need = "from collections import namedtuple"
    return Shape(
        lambda pairs: f"{made}({', '.join(f'{k}={v}' for k, v in pairs)})",
        lambda name, _: f"{word}.{name}",
        (need,),
        header,
    )


def _apply(project: Project, rng: Random) -> Project | None:
    if dynamic(project):
        return None
    places = [
        (f.src.weight(n for n in ast.walk(f.node)), f)
        for f in called(project)
        if len(f.parameters) > 1
    ]
    return first(drawn(rng, places), lambda function: _handed(project, rng, function))


def _handed(project: Project, rng: Random, function: Called) -> Project | None:
    src, node = function.src, function.node
    chosen = [p for p in function.parameters if all(_known(function, c, p) for c in function.calls)]
    if len(chosen) > 2 and rng.random() < 0.6:
        chosen = [p for p in chosen if rng.random() < 0.6]
    if len(chosen) < 2 or not body(node) or body(node)[0].lineno == node.lineno:
        return None
    word = fresh(project, rng, ("ctx", "parts", "bundle", "pack", "env"))
    shape = _shape(project, rng, function, chosen, word)
    mine = scopes(src).by_node[node].variables
    variables = [mine[p] for p in chosen]
    edits: dict[str, list[Edit]] = {function.path: []}
    unused = [v for v in variables if not v.every]
    bound = any(v.stores for v in variables) and shape.made([]) in (
        "()",
        "SimpleNamespace()",
        "Parts()",
    )
    if len(unused) < len(variables) and not bound and _all(src, variables) and rng.random() < 0.7:
        for v in variables:
            edits[function.path] += replaced(src, [v], lambda n: shape.spell(n, chosen))
    else:
        head = body(node)[0]
        if not src.alone([head]):
            return None
        names, start = ", ".join(chosen), src.above(head)
        values = ", ".join(shape.spell(name, chosen) for name in chosen)
        edits[function.path].append(Edit(start, start, f"{src.indent(head)}{names} = {values}\n"))
    edits[function.path].append(_signature(src, node, chosen, word))
    if shape.header:
        at = src.above(outermost(src, node))
        edits[function.path].append(Edit(at, at, shape.header))
    before = rng.random() < 0.5
    for call in function.calls:
        made = _rewritten(project, rng, function, call, chosen, word, shape, before)
        edits.setdefault(call.path, []).extend(made)
    for path in {call.path for call in function.calls}:
        for need in shape.needs:
            edits[path] += imported(_source(function, path), need)
    return _written(project, function, edits)


def _all(src: Source, variables: list[Variable]) -> bool:
    return all(not v.every or movable(src, v) for v in variables) and not any(
        v.stores for v in variables
    )


def _source(function: Called, path: str) -> Source:
    return next((c.src for c in function.calls if c.path == path), function.src)


def _known(function: Called, call: Call, parameter: str) -> bool:
    value = call.given.get(parameter)
    if value is None:
        return isinstance(function.defaults.get(parameter), ast.Constant)
    return simple(value)


def _signature(src: Source, node: ast.FunctionDef, chosen: list[str], word: str) -> Edit:
    a = node.args
    every = [*a.args, *a.kwonlyargs]
    start, _ = src.span(every[0])
    last = max(src.span(n)[1] for n in (*every, *a.defaults, *filter(None, a.kw_defaults)))
    rows = [word]
    spread = [None] * (len(a.args) - len(a.defaults)) + list(a.defaults)
    pairs = [*zip(a.args, spread, strict=True), *zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    for k, (parameter, default) in enumerate(pairs):
        if k == len(a.args) and any(p.arg not in chosen for p in a.kwonlyargs):
            rows.append("*")
        if parameter.arg not in chosen:
            equals = " = " if parameter.annotation else "="
            rows.append(src.code(parameter) + (equals + src.code(default) if default else ""))
    if a.kwonlyargs and not a.args:
        start = src.text.rindex("(", 0, start) + 1
    return Edit(start, last, ", ".join(rows))


def _rewritten(
    project: Project,
    rng: Random,
    function: Called,
    call: Call,
    chosen: list[str],
    word: str,
    shape: Shape,
    before: bool,
) -> list[Edit]:
    src, node = call.src, call.node
    pairs = []
    for name in chosen:
        value = call.given.get(name)
        pairs.append(
            (name, src.code(value) if value else function.src.code(function.defaults[name]))
        )
    made = shape.made(pairs)
    positional = [p.arg for p in function.node.args.args]
    rest = [src.code(v) for p, v in zip(positional, node.args, strict=False) if p not in chosen]
    rest += [f"{k.arg}={src.code(k.value)}" for k in node.keywords if k.arg not in chosen]
    edits = []
    statement = src.statement(node)
    whole = isinstance(statement, _STATEMENTS) and src.alone([statement])
    if before and whole and statement.value is node:
        held = fresh(project, rng, (word,)) if not isinstance(statement, ast.Module) else word
        start = src.above(statement)
        edits.append(Edit(start, start, f"{src.indent(statement)}{held} = {made}\n"))
        made = held
    _, start = src.span(node.func)
    _, stop = src.span(node)
    edits.append(Edit(start, stop, f"({', '.join([made, *rest])})"))
    return edits


def _written(project: Project, function: Called, edits: dict[str, list[Edit]]) -> Project | None:
    for path, mine in edits.items():
        src = _source(function, path) if path != function.path else function.src
        text = src.edited(mine)
        if text is None:
            return None
        project = project.changed(path, text)
    return project


def _shared(project: Project, rng: Random) -> Project | None:
    """Keep variables of the caller in one container that the function it calls reads them from."""
    if dynamic(project):
        return None
    places = [
        (f.src.weight(n for n in ast.walk(f.node)), f)
        for f in called(project)
        if f.parameters and len(f.calls) == 1
    ]
    return first(drawn(rng, places), lambda function: _share(project, rng, function))


def _share(project: Project, rng: Random, function: Called) -> Project | None:
    call, node = function.calls[0], function.node
    caller = call.src.inside(call.node, *Function.__args__, ast.Lambda)
    if not isinstance(caller, ast.FunctionDef) or caller is node:
        return None
    outer, inner = (
        scopes(call.src).by_node[caller].variables,
        scopes(function.src).by_node[node].variables,
    )
    pairs: list[tuple[str, Variable, Variable]] = []
    for name in function.parameters:
        value = call.given.get(name)
        theirs = inner[name]
        if not isinstance(value, ast.Name) or value.id not in outer or theirs.stores:
            continue
        mine = outer[value.id]
        if mine.inner or not movable(call.src, mine) or mine in [m for _, m, _ in pairs]:
            continue
        if theirs.every and not movable(function.src, theirs):
            continue
        pairs.append((name, mine, theirs))
    if len(pairs) < 2 or _method_self(call.src, caller, pairs):
        return None
    statements = [
        s for s in body(caller) if not isinstance(s, ast.Global | ast.Import | ast.ImportFrom)
    ]
    names = {id(n) for _, mine, _ in pairs for n in mine.every}
    at = next((s for s in statements if any(id(n) in names for n in ast.walk(s))), statements[0])
    if any(mine.parameter for _, mine, _ in pairs):
        at = statements[0]
    if at.lineno == caller.lineno or not call.src.alone([at]):
        return None
    word = fresh(project, rng, ("ctx", "run", "env", "bundle"))
    dictionary = rng.random() < 0.4
    given = [mine.name for _, mine, _ in pairs if mine.parameter]
    if dictionary:
        create = "{" + ", ".join(f'"{g}": {g}' for g in given) + "}"
    else:
        create = f"SimpleNamespace({', '.join(f'{g}={g}' for g in given)})"
    spell: Callable[[str], str] = (
        (lambda n: f'{word}["{n}"]') if dictionary else (lambda n: f"{word}.{n}")
    )
    start = call.src.above(at)
    edits: dict[str, list[Edit]] = {call.path: [], function.path: []}
    if not dictionary:
        edits[call.path] += imported(call.src, "from types import SimpleNamespace")
    edits[call.path].append(Edit(start, start, f"{call.src.indent(at)}{word} = {create}\n"))
    chosen = [name for name, _, _ in pairs]
    for _, mine, theirs in pairs:
        skip = [call.given[n] for n in chosen]
        edits[call.path] += [
            Edit(*call.src.span(n), spell(mine.name)) for n in mine.every if n not in skip
        ]
        edits[function.path] += [
            Edit(*function.src.span(n), spell(mine.name)) for n in theirs.every
        ]
    edits[function.path].append(_signature(function.src, node, chosen, word))
    positional = [p.arg for p in node.args.args]
    kept = [v for p, v in zip(positional, call.node.args, strict=False) if p not in chosen]
    moved = {n: spell(mine.name) for _, mine, _ in pairs for n in mine.every}
    rest = [_respelled(call.src, v, moved) for v in kept]
    rest += [
        f"{k.arg}={_respelled(call.src, k.value, moved)}"
        for k in call.node.keywords
        if k.arg not in chosen
    ]
    _, left = call.src.span(call.node.func)
    _, right = call.src.span(call.node)
    edits[call.path] = [e for e in edits[call.path] if not left <= e.start < right]
    edits[call.path].append(Edit(left, right, f"({', '.join([word, *rest])})"))
    return _written(project, function, edits)


def _method_self(
    src: Source, caller: ast.FunctionDef, pairs: list[tuple[str, Variable, Variable]]
) -> bool:
    own = caller.args.args[0] if caller.args.args else None
    inside = isinstance(src.parents[caller], ast.ClassDef)
    return inside and any(mine.parameter is own for _, mine, _ in pairs)


def _respelled(src: Source, node: ast.expr, moved: dict[ast.Name, str]) -> str:
    start, stop = src.span(node)
    edits = [Edit(*src.span(n), text) for n, text in moved.items()]
    return src.moved(start, stop, edits) or src.code(node)


REFACTORINGS = (
    Refactoring("parameters are handed over in a container", "places", _apply),
    Refactoring(
        "a function reads the variables of its caller from one container", "places", _shared
    ),
)
