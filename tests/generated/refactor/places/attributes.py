"""Moves attributes of an object: into a dict, a list or a part of it, or behind a property."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from generated.refactor.code.calls import attributes, body, classes, dynamic, words
from generated.refactor.code.names import fresh
from generated.refactor.code.source import Edit, Source, drawn, first, imported, sources
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_TARGETS = ast.For | ast.AsyncFor | ast.comprehension | ast.withitem | ast.AnnAssign | ast.Delete


@dataclass(frozen=True)
class Attributes:
    """Attributes that a class binds in its constructor, and all places that name them."""

    path: str
    src: Source
    klass: ast.ClassDef
    constructor: ast.FunctionDef
    names: tuple[str, ...]


def plain(project: Project, klass: ast.ClassDef) -> bool:
    """Tell whether the objects of a class are ordinary ones, by its bases and special methods."""
    own = {c.name: c for src in sources(project).values() for c in classes(src)}
    seen: set[str] = set()
    waiting = [klass]
    while waiting:
        here = waiting.pop()
        seen.add(here.name)
        if here.decorator_list or here.keywords or "__slots__" in words(project):
            return False
        special = {"__getattr__", "__setattr__", "__getattribute__", "__new__", "__getstate__"}
        if any(isinstance(n, ast.FunctionDef) and n.name in special for n in here.body):
            return False
        for base in here.bases:
            word = ast.unparse(base)
            if word == "object" or word in seen:
                continue
            if word not in own:
                return False
            waiting.append(own[word])
    return True


def constructor(klass: ast.ClassDef) -> ast.FunctionDef | None:
    """Return the constructor of a class."""
    found = [n for n in klass.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    return found[0] if found and not found[0].decorator_list else None


def own_name(node: ast.expr, word: str = "self") -> bool:
    """Tell whether an expression is the name of the object itself."""
    return isinstance(node, ast.Name) and node.id == word


def classlevel(project: Project, name: str) -> bool:
    """Tell whether a class has a method or an attribute of its own by this name."""
    for src in sources(project).values():
        for klass in (n for n in ast.walk(src.tree) if isinstance(n, ast.ClassDef)):
            for node in klass.body:
                if getattr(node, "name", "") == name:
                    return True
                targets = getattr(node, "targets", [getattr(node, "target", None)])
                if any(own_name(t, name) for t in targets if t is not None):
                    return True
    return False


def _bound(src: Source, init: ast.FunctionDef) -> set[str]:
    nodes = (n for n in ast.walk(init) if isinstance(n, ast.Attribute) and own_name(n.value))
    return {n.attr for n in nodes if isinstance(n.ctx, ast.Store)}


def _replaceable(src: Source, node: ast.Attribute) -> bool:
    here: ast.AST = node
    while not isinstance(here, ast.stmt | ast.comprehension | ast.withitem):
        if isinstance(here, ast.JoinedStr):
            return False
        here = src.parents[here]
    return isinstance(node.ctx, ast.Load) or not isinstance(here, _TARGETS)


def _family(project: Project, klass: ast.ClassDef) -> set[str]:
    """Return the names of a class, its bases and its subclasses."""
    found = {klass.name}
    every = [c for src in sources(project).values() for c in classes(src)]
    for _ in every:
        for c in every:
            bases = {ast.unparse(b) for b in c.bases}
            if c.name in found:
                found |= bases
            elif bases & found - {"object"}:
                found.add(c.name)
    return found


def _places(project: Project, outside: bool) -> list[tuple[float, Attributes]]:
    """Return the constructors that bind attributes; those named elsewhere than on self only if `outside`."""
    found = []
    for path, src in sources(project).items():
        for klass in classes(src):
            init = constructor(klass)
            if init is None or not plain(project, klass) or not body(init):
                continue
            mine = _family(project, klass)
            names = [
                name
                for name in sorted(_bound(src, init))
                if not classlevel(project, name) and _movable(project, mine, init, name, outside)
            ]
            if names:
                every = [n for name in names for _, s, n in attributes(project, name) if s is src]
                found.append((src.weight(every), Attributes(path, src, klass, init, tuple(names))))
    return found


def _movable(
    project: Project, mine: set[str], init: ast.FunctionDef, name: str, outside: bool
) -> bool:
    if name.startswith("__"):
        return False
    for _, src, node in attributes(project, name):
        if not own_name(node.value):
            if not outside or not isinstance(node.ctx, ast.Load):
                return False
            continue
        klass = src.inside(node, ast.ClassDef)
        assert klass is None or isinstance(klass, ast.ClassDef)
        if klass is None or not _replaceable(src, node):
            return False
        if klass.name not in mine:  # another class has an attribute of this name
            continue
        around = src.inside(node, ast.FunctionDef)
        if (
            isinstance(around, ast.FunctionDef)
            and around.name == "__init__"
            and around is not init
            and not isinstance(node.ctx, ast.Load)
        ):
            return False
    return True


def _spelled(
    project: Project, place: Attributes, names: list[str], spell: Callable[[str], str]
) -> dict[str, list[Edit]]:
    mine = _family(project, place.klass)
    edits: dict[str, list[Edit]] = {place.path: []}
    for name in names:
        for path, src, node in attributes(project, name):
            klass = src.inside(node, ast.ClassDef)
            if own_name(node.value) and isinstance(klass, ast.ClassDef) and klass.name in mine:
                edits.setdefault(path, []).append(Edit(*src.span(node), spell(name)))
    return edits


def _written(project: Project, edits: dict[str, list[Edit]]) -> Project | None:
    for path, mine in edits.items():
        text = sources(project)[path].edited(mine)
        if text is None:
            return None
        project = project.changed(path, text)
    return project


def _into(kind: str) -> Callable[[Project, Random], Project | None]:
    def apply(project: Project, rng: Random) -> Project | None:
        if dynamic(project) or "getattr(self" in project.text or "hasattr(self" in project.text:
            return None
        places = drawn(rng, _places(project, outside=False))
        return first(places, lambda place: _contained(project, rng, kind, place))

    return apply


def _contained(project: Project, rng: Random, kind: str, place: Attributes) -> Project | None:
    src, names = place.src, list(place.names)
    rng.shuffle(names)
    weights = [
        (src.weight(n for _, s, n in attributes(project, name) if s is src), name) for name in names
    ]
    chosen = list(drawn(rng, weights))[: rng.choice([1, 2, 2, 3, 5])]
    head = body(place.constructor)[0]
    if head.lineno == place.constructor.lineno or not src.alone([head]):
        return None
    indent, start = src.indent(head), src.above(head)
    if kind == "dict":
        home = fresh(project, rng, ("state", "_state", "held", "_objects"))
        edits = _spelled(project, place, chosen, lambda word: f'self.{home}["{word}"]')
        edits[place.path].append(Edit(start, start, f"{indent}self.{home} = {{}}\n"))
    elif kind == "list":
        home = fresh(project, rng, ("parts", "_parts", "opts", "slots"))
        edits = _spelled(project, place, chosen, lambda word: f"self.{home}[{chosen.index(word)}]")
        rows = f"[None] * {len(chosen)}" if len(chosen) > 1 else "[None]"
        edits[place.path].append(Edit(start, start, f"{indent}self.{home} = {rows}\n"))
    else:
        home = fresh(project, rng, ("state", "_parts", "ctx", "components"))
        edits = _spelled(project, place, chosen, lambda word: f"self.{home}.{word}")
        made = f"{indent}self.{home} = SimpleNamespace()\n"
        edits[place.path].append(Edit(start, start, made))
        edits[place.path] += imported(src, "from types import SimpleNamespace")
    return _written(project, edits)


def _properties(project: Project, rng: Random) -> Project | None:
    """Keep attributes under a private name, or in a private dict, with properties that return them."""
    if dynamic(project) or "getattr(self" in project.text or "hasattr(self" in project.text:
        return None
    places = drawn(rng, _places(project, outside=True))
    return first(places, lambda place: _behind(project, rng, place))


def _behind(project: Project, rng: Random, place: Attributes) -> Project | None:
    src, unit = place.src, place.src.unit
    weights = [
        (src.weight(n for _, s, n in attributes(project, name) if s is src), name)
        for name in place.names
        if f"_{name}" not in words(project)
    ]
    chosen = list(drawn(rng, weights))[: rng.choice([1, 1, 2, 3])]
    head = body(place.constructor)[0]
    if not chosen or head.lineno == place.constructor.lineno or not src.alone([head]):
        return None
    inner = src.indent(place.constructor)
    home = fresh(project, rng, ("_state", "_held")) if rng.random() < 0.35 else ""
    private: Callable[[str], str] = (
        (lambda word: f'self.{home}["{word}"]') if home else (lambda word: f"self._{word}")
    )
    edits = _stores(project, place, chosen, private)
    if edits is None:
        return None
    if home:
        start = src.above(head)
        edits[place.path].append(Edit(start, start, f"{src.indent(head)}self.{home} = {{}}\n"))
    below = src.below(place.constructor)
    text = "".join(
        f"\n{inner}@property\n{inner}def {word}(self):\n{inner}{unit}return {private(word)}\n"
        for word in chosen
    )
    edits[place.path].append(Edit(below, below, text))
    return _written(project, edits)


def _stores(
    project: Project, place: Attributes, chosen: list[str], private: Callable[[str], str]
) -> dict[str, list[Edit]] | None:
    """Return the edits that bind the private attribute; augmented ones would need a setter."""
    mine = _family(project, place.klass)
    edits: dict[str, list[Edit]] = {place.path: []}
    for name in chosen:
        for path, src, node in attributes(project, name):
            klass = src.inside(node, ast.ClassDef)
            if isinstance(node.ctx, ast.Load) or not isinstance(klass, ast.ClassDef):
                continue
            if own_name(node.value) and klass.name in mine:
                edits.setdefault(path, []).append(Edit(*src.span(node), private(name)))
    return edits


REFACTORINGS = (
    Refactoring("attributes move into a dict of the object", "places", _into("dict")),
    Refactoring("attributes move into a list of the object", "places", _into("list")),
    Refactoring("attributes move into a part of the object", "places", _into("part")),
    Refactoring("attributes hide behind properties", "places", _properties),
)
