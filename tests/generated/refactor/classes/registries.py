"""Looks classes and functions up in a dictionary, or in a registry filled by a decorator."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from random import Random

from generated.refactor.code.modules import importing
from generated.refactor.code.names import fresh
from generated.refactor.code.source import Edit, Function, Source, drawn, first, sources
from generated.refactor.code.variables import Variable, scopes
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_NAMES = ("REGISTRY", "FACTORIES", "BUILDERS", "CHOICES", "TABLE")


def _root(node: ast.expr) -> ast.Name | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _calls(project: Project, path: str, src: Source) -> Iterator[tuple[ast.Call, ast.stmt | None]]:
    """Yield the calls of classes and functions of the module, with the statement that defines them."""
    every, heads = scopes(src), importing(src)
    for node in ast.walk(src.tree):
        if not isinstance(node, ast.Call):
            continue
        root = _root(node.func)
        if root is None or every.of[root].scope is not every.module:
            continue
        variable = every.of[root]
        last = ast.unparse(node.func).rpartition(".")[2]
        if root.id in heads:
            plain = isinstance(heads[root.id], ast.Import | ast.ImportFrom)
            if plain and last[:1].isupper() and len(variable.binders) == 1:
                yield node, None
        elif isinstance(node.func, ast.Name) and _defined(variable):
            statement = variable.binders[0]
            assert isinstance(statement, ast.stmt)
            if statement in src.tree.body and not _inside(src, node, statement):
                yield node, statement


def _defined(variable: Variable) -> bool:
    kinds = (*Function.__args__, ast.ClassDef)
    return (
        len(variable.binders) == 1
        and isinstance(variable.binders[0], kinds)
        and not variable.stores
    )


def _inside(src: Source, node: ast.AST, statement: ast.stmt) -> bool:
    return any(n is node for n in ast.walk(statement))


def _key(src: Source, node: ast.Call) -> str:
    word = ast.unparse(node.func).rpartition(".")[2]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word).lower()


_OTHERS = {
    "CrossEntropyLoss": "MSELoss",
    "MSELoss": "L1Loss",
    "SGD": "Adam",
    "Adam": "SGD",
    "AdamW": "SGD",
    "StepLR": "ExponentialLR",
}


def _dict(project: Project, rng: Random) -> Project | None:
    places = [
        (_weight(src, node), (path, src, node, defined))
        for path, src in sources(project).items()
        for node, defined in _calls(project, path, src)
    ]

    def one(place: tuple[str, Source, ast.Call, ast.stmt | None]) -> Project | None:
        path, src, node, defined = place
        word, key = src.code(node.func), _key(src, node)
        name = fresh(project, rng, _NAMES)
        at = src.below(defined) if defined else src.top()
        if not defined and _top_level_before(src, node, at):
            return None
        entries = {key: word}
        other = _OTHERS.get(word.rpartition(".")[2])
        if other and "." in word and rng.random() < 0.7:
            entries[other.lower()] = word.rpartition(".")[0] + "." + other
        rows = ", ".join(f'"{k}": {v}' for k, v in entries.items())
        lead = "\n\n" if defined else "\n" if not src.text[:at].endswith("\n\n") else ""
        text = f"{lead}{name} = {{{rows}}}\n"
        if not src.text[at:].startswith("\n"):
            text += "\n\n"
        edits = [Edit(*src.span(node.func), f'{name}["{key}"]')]
        if rng.random() < 0.3:
            build = fresh(project, rng, ("build", "make", "create", "call_by_name"))
            unit = src.unit
            text = text.rstrip("\n") + (
                f"\n\n\ndef {build}(kind, *args, **kwargs):\n"
                f"{unit}return {name}[kind](*args, **kwargs)\n"
            )
            if not src.text[at:].startswith("\n"):
                text += "\n\n"
            _, start = src.span(node.func)
            rest = src.text[start : src.span(node)[1]]
            empty = not node.args and not node.keywords
            given = f'("{key}")' if empty else f'("{key}", ' + rest.lstrip()[1:].lstrip()
            edits = [Edit(*src.span(node), build + given)]
        changed = src.edited([Edit(at, at, text), *edits])
        return None if changed is None else project.changed(path, changed)

    return first(drawn(rng, places), one)


def _top_level_before(src: Source, node: ast.AST, at: int) -> bool:
    return src.span(node)[0] < at


def _weight(src: Source, node: ast.Call) -> float:
    heavy = re.search(r"optim|SGD|Adam|Loss|train|Trainer|backward|step|main", src.code(node.func))
    network = src.inside(node, ast.ClassDef)
    return 6.0 if heavy else 0.2 if network else 1.5


def _decorated(project: Project, rng: Random) -> Project | None:
    """Register a class or a function by a decorator, and call it by its key."""
    places = [
        (_weight(src, node), (path, src, node, defined))
        for path, src in sources(project).items()
        for node, defined in _calls(project, path, src)
        if defined is not None
    ]

    def one(place: tuple[str, Source, ast.Call, ast.stmt]) -> Project | None:
        path, src, node, defined = place
        unit, key = src.unit, _key(src, node)
        registry = fresh(project, rng, ("_REGISTRY", "_ENTRIES", "_MODELS"))
        register = fresh(project, rng, ("register", "registered", "entry"))
        head = (
            f"{registry} = {{}}\n\n\ndef {register}(name):\n{unit}def add(thing):\n"
            f"{unit * 2}{registry}[name] = thing\n{unit * 2}return thing\n\n{unit}return add\n\n\n"
        )
        at = src.above(defined)
        decorators = getattr(defined, "decorator_list", [])
        if decorators:
            return None
        start = src.span(defined)[0]
        edits = [
            Edit(at, at, head),
            Edit(start, start, f'@{register}("{key}")\n'),
            Edit(*src.span(node.func), f'{registry}["{key}"]'),
        ]
        if at == start:
            edits[:2] = [Edit(at, at, head + f'@{register}("{key}")\n')]
        changed = src.edited(edits)
        return None if changed is None else project.changed(path, changed)

    return first(drawn(rng, places), one)


REFACTORINGS = (
    Refactoring("a call goes through a dict", "classes", _dict),
    Refactoring("a call goes through a registry", "classes", _decorated),
)
