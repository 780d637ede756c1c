"""Reads variables that are final from a tuple, by their index or unpacked again where they are used."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from random import Random

from generated.refactor.code.calls import body, dynamic, imports_of
from generated.refactor.code.names import fresh
from generated.refactor.code.source import Edit, Function, Source, drawn, first, sources
from generated.refactor.code.variables import Scope, Variable, scopes
from generated.refactor.places.containers import first_parameter
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_Loop = ast.For | ast.While


def _statements(scope: Scope) -> list[ast.stmt]:
    node = scope.node
    if isinstance(node, ast.Module):
        return node.body
    assert isinstance(node, Function)
    return body(node)


def _final(src: Source, statements: Sequence[ast.stmt], variable: Variable) -> int | None:
    """Return the index of the statement before which a variable has its last value for certain."""
    if variable.declarations or variable.name.startswith("_"):
        return None
    if any(not isinstance(b, ast.arg) for b in variable.binders):
        return None
    stores = variable.stores
    if any(isinstance(n.ctx, ast.Del) for n in stores):
        return None
    mine = {id(n) for n in stores}
    held = [k for k, s in enumerate(statements) if any(id(n) in mine for n in ast.walk(s))]
    plain = any(_bound(statements[k], mine) for k in held)
    if not variable.binders and not plain:
        return None
    return held[-1] + 1 if held else 0


def _bound(statement: ast.stmt, stores: set[int]) -> bool:
    """Tell whether a statement binds one of these names whenever it ends."""
    if isinstance(statement, ast.Assign):
        return any(id(n) in stores for t in statement.targets for n in ast.walk(t))
    if isinstance(statement, ast.AnnAssign):
        return statement.value is not None and id(statement.target) in stores
    return False


def _below(src: Source, variable: Variable, rest: Sequence[ast.stmt]) -> list[ast.Name]:
    """Return the names that read a variable in some statements, those in f-strings not among them."""
    inside = {id(n) for s in rest for n in ast.walk(s)}
    return [n for n in variable.loads if id(n) in inside and not src.inside(n, ast.JoinedStr)]


def _tuple(project: Project, rng: Random) -> Project | None:
    if dynamic(project):
        return None
    places = []
    for path, src in sources(project).items():
        for scope in scopes(src).all:
            script = scope.node is src.tree
            if not scope.function and (not script or imports_of(project, path)):
                continue
            own, statements = first_parameter(src, scope), _statements(scope)
            if not statements or (scope.function and statements[0].lineno == scope.node.lineno):  # type: ignore[attr-defined]
                continue
            mine = [
                v for v in scope.variables.values() if v.parameter is None or v.parameter is not own
            ]
            ends = {v.name: _final(src, statements, v) for v in mine}
            known = [
                (v, end)
                for v in mine
                if (end := ends[v.name]) is not None and _below(src, v, statements[end:])
            ]
            if len(known) > 1:
                weight = src.weight(n for v, _ in known for n in v.every)
                places.append((weight, (path, src, scope, known)))
    return first(drawn(rng, places), lambda place: _held(project, rng, *place))


def _held(
    project: Project,
    rng: Random,
    path: str,
    src: Source,
    scope: Scope,
    known: list[tuple[Variable, int]],
) -> Project | None:
    weighted = [(1.0 + src.weight(v.loads), (v, end)) for v, end in known]
    chosen = list(drawn(rng, weighted))[: rng.choice([2, 2, 3, 4])]
    statements = _statements(scope)
    start = max(end for _, end in chosen)
    rest = statements[start:]
    loads = {v.name: _below(src, v, rest) for v, _ in chosen}
    words = [v.name for v, _ in sorted(chosen, key=lambda c: c[0].every[0].lineno) if loads[v.name]]
    if len(words) < 2 or not src.alone(statements[max(start - 1, 0) : start + 1]):
        return None
    name = fresh(project, rng, ("held", "pair", "objects", "parts", "bundle"))
    near = statements[start - 1] if start else statements[0]
    at = src.below(near) if start else src.above(near)
    edits = [Edit(at, at, f"{src.indent(near)}{name} = ({', '.join(words)})\n")]
    every = [n for word in words for n in loads[word]]
    unpacked: set[int] = set()
    heads = _heads(src, scope, rest, words, every)
    if heads and rng.random() < 0.6:
        head = rng.choice(heads)
        unpacked = {id(n) for s in head for n in ast.walk(s)}
        top = src.above(head[0])
        edits.append(Edit(top, top, f"{src.indent(head[0])}{', '.join(words)} = {name}\n"))
    for word in words:
        spelled = f"{name}[{words.index(word)}]"
        edits += [Edit(*src.span(n), spelled) for n in loads[word] if id(n) not in unpacked]
    text = src.edited(edits)
    return None if text is None else project.changed(path, text)


def _heads(
    src: Source,
    scope: Scope,
    rest: Sequence[ast.stmt],
    words: Sequence[str],
    loads: Sequence[ast.Name],
) -> list[list[ast.stmt]]:
    """Return the bodies of loops and helpers that read some of these variables and bind none."""
    mine, found = {id(n) for n in loads}, []
    for node in (n for s in rest for n in ast.walk(s)):
        if not isinstance(node, _Loop | ast.FunctionDef):
            continue
        inner = body(node) if isinstance(node, ast.FunctionDef) else node.body
        around = (
            node
            if isinstance(node, ast.FunctionDef)
            else src.inside(node, Function, ast.Lambda, ast.ClassDef)
        )
        if isinstance(node, ast.FunctionDef):
            if set(words) & set(scopes(src).by_node[node].variables):
                continue
        elif (around or src.tree) is not scope.node:
            continue
        if not inner or inner[0].lineno == node.lineno or not src.alone(inner[:1]):
            continue
        if any(id(n) in mine for s in inner for n in ast.walk(s)):
            found.append(inner)
    return found


REFACTORINGS = (Refactoring("final variables are read from a tuple", "places", _tuple),)
