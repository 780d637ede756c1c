"""Which calls of a method are surely those of the classes of a project: where no instance gets out of sight."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from generated.refactor.code.identifiers import Place, Scope, Text
from generated.refactor.noise.words import external


def methods(texts: dict[str, Text]) -> dict[str, list[tuple[str, Place]]]:
    """Return the places of methods whose names libraries use too, by name."""
    classes = _closed(texts)
    if not classes:
        return {}
    above = {path: _parents(held.tree) for path, held in texts.items()}
    if not all(_in_sight(held, above[path], classes) for path, held in texts.items()):
        return {}
    found: dict[str, list[tuple[str, Place]]] = {}
    for path, held in texts.items():
        for place in held.places:
            if _defines(place, classes) or _calls(place, held, above[path], classes):
                found.setdefault(place.name, []).append((path, place))
    defined = {n for s in _scopes(texts, classes) for n in s.bound}
    stored = {
        p.name
        for held in texts.values()
        for p in held.places
        if p.kind == "attribute" and not isinstance(p.node.ctx, ast.Load)  # type: ignore[attr-defined]
    }
    return {
        name: places
        for name, places in found.items()
        if name in defined & external() - stored and not name.startswith("__")
    }


def _scopes(texts: dict[str, Text], classes: set[str]) -> Iterator[Scope]:
    for held in texts.values():
        for scope in held.scopes:
            if isinstance(scope.node, ast.ClassDef) and scope.node.name in classes:
                yield scope


def _closed(texts: dict[str, Text]) -> set[str]:
    """Return the classes of modules that have no bases but each other."""
    nodes = [
        n for held in texts.values() for n in ast.walk(held.tree) if isinstance(n, ast.ClassDef)
    ]
    top = {n.name for held in texts.values() for n in held.tree.body if isinstance(n, ast.ClassDef)}
    names = [n.name for n in nodes]
    found = {n.name for n in nodes if n.name in top and names.count(n.name) == 1 and not n.keywords}
    while True:
        open_ones = {
            n.name
            for n in nodes
            if n.name in found and not all(ast.unparse(b) in found | {"object"} for b in n.bases)
        }
        if not open_ones:
            return found
        found -= open_ones


def _parents(tree: ast.AST) -> dict[int, ast.AST]:
    return {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def _in_sight(held: Text, above: dict[int, ast.AST], classes: set[str]) -> bool:
    """Tell whether instances are only made, asked for attributes, and kept under one name."""
    for place in held.places:
        if place.kind != "name":
            if place.kind == "attribute" and place.name in classes:
                return False
            continue
        node, parent = place.node, above[id(place.node)]
        if place.name in classes and not isinstance(parent, ast.ClassDef):
            if not (isinstance(parent, ast.Call) and parent.func is node):
                return False
            if not _kept(parent, above) and not isinstance(above[id(parent)], ast.Attribute):
                return False
        elif (_is_self(place, classes) or _instance(place, held, above, classes)) and not (
            isinstance(parent, ast.Attribute) or isinstance(node.ctx, ast.Store)  # type: ignore[attr-defined]
        ):
            return False
    return True


def _kept(call: ast.Call, above: dict[int, ast.AST]) -> str:
    """Return the name that a new instance gets, empty where it has another fate."""
    parent = above[id(call)]
    if (
        isinstance(parent, ast.Assign)
        and len(parent.targets) == 1
        and isinstance(parent.targets[0], ast.Name)
    ):
        return parent.targets[0].id
    return ""


def _is_self(place: Place, classes: set[str]) -> bool:
    """Tell whether a name is the object of a method of one of the classes."""
    home = place.scope.home(place.name)
    if home is None or not isinstance(home.node, ast.FunctionDef) or home.parent is None:
        return False
    outer = home.parent.node
    first = home.node.args.args[:1]
    return (
        isinstance(outer, ast.ClassDef)
        and outer.name in classes
        and bool(first)
        and first[0].arg == place.name
    )


def _instance(place: Place, held: Text, above: dict[int, ast.AST], classes: set[str]) -> bool:
    """Tell whether a name is bound to new instances of the classes."""
    home = place.scope.home(place.name)
    if home is None or place.name in home.imported | home.parameters:
        return False
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name)
        and n.func.id in classes
        and _kept(n, above) == place.name
        for n in ast.walk(home.node)
    )


def _defines(place: Place, classes: set[str]) -> bool:
    outer = place.scope.node
    return place.kind == "definition" and isinstance(outer, ast.ClassDef) and outer.name in classes


def _calls(place: Place, held: Text, above: dict[int, ast.AST], classes: set[str]) -> bool:
    if place.kind != "attribute":
        return False
    value = place.node.value  # type: ignore[attr-defined]
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        if value.func.id == "super":
            outer = place.scope
            while outer.parent is not None and not outer.is_class:
                outer = outer.parent
            return isinstance(outer.node, ast.ClassDef) and outer.node.name in classes
        return value.func.id in classes
    if not isinstance(value, ast.Name):
        return False
    receiver = next(p for p in held.places if p.node is value)
    return _is_self(receiver, classes) or _instance(receiver, held, above, classes)
