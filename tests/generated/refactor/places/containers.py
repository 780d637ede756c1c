"""Moves variables of a function or a script into a container: a dict, a list, a namespace, an object."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from generated.refactor.code.calls import body, dynamic, imports_of
from generated.refactor.code.names import fresh
from generated.refactor.code.source import (
    Edit,
    Function,
    Source,
    drawn,
    first,
    imported,
    lead,
    sources,
)
from generated.refactor.code.variables import Scope, Variable, scopes
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_TARGETS = (ast.For, ast.AsyncFor, ast.comprehension, ast.withitem, ast.AnnAssign, ast.NamedExpr)


@dataclass(frozen=True)
class Container:
    """How a container is written: what makes it, given what is in it at first, and how a member is spelled.

    `header` stands above the function, `needs` are imports.
    """

    create: str
    spell: Callable[[str], str]
    header: str = ""
    needs: tuple[str, ...] = ()


Style = Callable[[Project, Random, Sequence[str], Sequence[str], str], Container]


def _dict(
    project: Project, rng: Random, words: Sequence[str], given: Sequence[str], unit: str
) -> Container:
    name = fresh(project, rng, ("state", "bag", "store", "held", "session"))
    items = ", ".join(f'"{word}": {word}' for word in given)
    empty = "dict()" if not given and rng.random() < 0.2 else f"{{{items}}}"
    return Container(f"{name} = {empty}\n", lambda word: f'{name}["{word}"]')


def _list(
    project: Project, rng: Random, words: Sequence[str], given: Sequence[str], unit: str
) -> Container:
    name = fresh(project, rng, ("parts", "slots", "pieces", "opts"))
    held = [word if word in given else "None" for word in words]
    rows = f"[None] * {len(held)}" if not given and len(held) > 1 else f"[{', '.join(held)}]"
    return Container(f"{name} = {rows}\n", lambda word: f"{name}[{list(words).index(word)}]")


def _namespace(
    project: Project, rng: Random, words: Sequence[str], given: Sequence[str], unit: str
) -> Container:
    name = fresh(project, rng, ("ctx", "env", "run", "bundle", "shared"))
    items = ", ".join(f"{word}={word}" for word in given)
    made, need = rng.choice(
        [
            ("types.SimpleNamespace", "import types"),
            ("SimpleNamespace", "from types import SimpleNamespace"),
            ("argparse.Namespace", "import argparse"),
        ]
    )
    if rng.random() < 0.3:
        inner = rng.choice(["state", "parts", "inner"])
        create = f"{name} = {made}({inner}={made}({items}))\n"
        return Container(create, lambda word: f"{name}.{inner}.{word}", needs=(need,))
    return Container(f"{name} = {made}({items})\n", lambda word: f"{name}.{word}", needs=(need,))


def _object(
    project: Project, rng: Random, words: Sequence[str], given: Sequence[str], unit: str
) -> Container:
    name = fresh(project, rng, ("ctx", "holder", "setup", "run"))
    kind = fresh(project, rng, ("Holder", "Context", "RunState", "Session"))
    items = ", ".join(f"{word}={word}" for word in given)
    shape = rng.choice(["plain", "constructor", "dataclass"])
    if shape == "dataclass":
        fields = "".join(f"{unit}{word}: object = None\n" for word in words)
        header = f"@dataclass\nclass {kind}:\n{fields}\n\n"
        needs: tuple[str, ...] = ("from dataclasses import dataclass",)
        create = f"{name} = {kind}({items})\n"
    elif shape == "constructor":
        parameters = ", ".join(f"{word}=None" for word in words)
        fields = "".join(f"{unit * 2}self.{word} = {word}\n" for word in words)
        header = f"class {kind}:\n{unit}def __init__(self, {parameters}):\n{fields}\n\n"
        needs, create = (), f"{name} = {kind}({items})\n"
    else:
        header, needs = f"class {kind}:\n{unit}pass\n\n\n", ()
        create = f"{name} = {kind}()\n" + "".join(f"{name}.{word} = {word}\n" for word in given)
    return Container(create, lambda word: f"{name}.{word}", header, needs)


def movable(src: Source, variable: Variable) -> bool:
    """Tell whether all names of a variable can be replaced by another place."""
    word = variable.name
    if variable.declarations or word.startswith("__") or not variable.names:
        return False
    if any(not isinstance(b, ast.arg) for b in variable.binders):
        return False
    if not variable.stores and not variable.binders:
        return False
    return all(_replaceable(src, name) for name in variable.every)


def _replaceable(src: Source, name: ast.Name) -> bool:
    load = isinstance(name.ctx, ast.Load)
    node: ast.AST = name
    while not isinstance(node, ast.stmt | ast.comprehension | ast.withitem):
        if isinstance(node, ast.JoinedStr):
            return False
        if not load and isinstance(node, ast.NamedExpr):
            return False
        node = src.parents[node]
    if load:
        return not isinstance(node, ast.AnnAssign) or node.target is not name
    return not isinstance(node, (*_TARGETS, ast.Delete))


def candidates(project: Project, src: Source, path: str) -> list[tuple[Scope, list[Variable]]]:
    """Return the functions and scripts of a file with their variables that can move."""
    found = []
    for scope in scopes(src).all:
        script = scope.node is src.tree
        if not (scope.function or (script and not imports_of(project, path))):
            continue
        own = first_parameter(src, scope)
        moving = [
            v
            for v in scope.variables.values()
            if v.parameter is None or (v.parameter is not own and _plain(scope.node, v.parameter))
            if movable(src, v)
        ]
        if moving and place(src, scope, moving) is not None:
            found.append((scope, moving))
    return found


def first_parameter(src: Source, scope: Scope) -> ast.arg | None:
    """Return the `self` of a method."""
    node = scope.node
    if not isinstance(node, ast.FunctionDef) or not isinstance(src.parents[node], ast.ClassDef):
        return None
    return node.args.args[0] if node.args.args else None


def _plain(node: ast.AST, parameter: ast.arg) -> bool:
    return isinstance(node, ast.FunctionDef) and parameter is not node.args.vararg


def place(src: Source, scope: Scope, moving: Sequence[Variable]) -> ast.stmt | None:
    """Return the statement in front of which the container is made."""
    node = scope.node
    if isinstance(node, ast.Module):
        statements = node.body
    else:
        assert isinstance(node, Function)
        statements = body(node)
    skip = ast.Global | ast.Nonlocal | ast.Import | ast.ImportFrom
    statements = [s for s in statements if not isinstance(s, skip)]
    if not statements or (isinstance(node, Function) and statements[0].lineno == node.lineno):
        return None
    found = statements[0]
    if not any(v.parameter for v in moving):
        mine = {id(n) for v in moving for n in v.every}
        found = next((s for s in statements if any(id(n) in mine for n in ast.walk(s))), found)
    if isinstance(node, ast.Module) and isinstance(found, Function | ast.ClassDef):
        lines = [n.lineno for v in moving for n in v.stores]
        above = [s for s in statements if (s.end_lineno or 0) >= min(lines)]
        found = above[0]
    return found if src.alone([found]) else None


def _moved(style: Style) -> Callable[[Project, Random], Project | None]:
    def apply(project: Project, rng: Random) -> Project | None:
        if dynamic(project):
            return None
        places = [
            (src.weight(n for v in moving for n in v.every), (path, src, scope, moving))
            for path, src in sources(project).items()
            for scope, moving in candidates(project, src, path)
        ]
        return first(drawn(rng, places), lambda found: _change(project, rng, style, *found))

    return apply


def _change(
    project: Project,
    rng: Random,
    style: Style,
    path: str,
    src: Source,
    scope: Scope,
    moving: Sequence[Variable],
) -> Project | None:
    count = rng.choice([1, 2, 2, 3, 4, 6])
    chosen = list(drawn(rng, [(src.weight(v.every), v) for v in moving]))[:count]
    chosen.sort(key=lambda v: min((n.lineno, n.col_offset) for n in v.every))
    at = place(src, scope, chosen)
    if at is None:
        return None
    words = [v.name for v in chosen]
    given = [v.name for v in chosen if v.parameter]
    container = style(project, rng, words, given, src.unit)
    indent = src.indent(at)
    start = src.above(at)
    create = "".join(indent + line for line in container.create.splitlines(keepends=True))
    edits = [Edit(start, start, create), *replaced(src, chosen, container.spell)]
    if container.header:
        outer = outermost(src, scope.node if scope.function else at)
        above = src.above(outer)
        if above == start:
            edits[0] = Edit(start, start, lead(src, start) + container.header + create)
        else:
            edits.append(Edit(above, above, lead(src, above) + container.header))
    for need in container.needs:
        edits += imported(src, need)
    text = src.edited(edits)
    return None if text is None else project.changed(path, text)


def replaced(src: Source, chosen: Sequence[Variable], spell: Callable[[str], str]) -> list[Edit]:
    """Return the edits that spell variables another way, wherever they are named."""
    return [Edit(*src.span(n), spell(v.name)) for v in chosen for n in v.every]


def outermost(src: Source, node: ast.AST) -> ast.stmt:
    """Return the statement of the module that holds a node."""
    while not isinstance(src.parents[node], ast.Module):
        node = src.parents[node]
    assert isinstance(node, ast.stmt)
    return node


REFACTORINGS = (
    Refactoring("variables move into a dict", "places", _moved(_dict)),
    Refactoring("variables move into a list", "places", _moved(_list)),
    Refactoring("variables move into a namespace", "places", _moved(_namespace)),
    Refactoring("variables move into an object", "places", _moved(_object)),
)
