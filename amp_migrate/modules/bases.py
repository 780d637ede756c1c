"""Classes that programs only derive from: what is made are objects of their subclasses."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from amp_migrate.facts.constants import string
from amp_migrate.facts.imports import last_name
from amp_migrate.modules.itself import IMPORTERS
from amp_migrate.modules.model import Class, Module

if TYPE_CHECKING:
    from amp_migrate.modules.lookup import Lookup

_BY_NAME = IMPORTERS | {"eval", "exec", "getattr", "globals", "locals", "vars"}
_ASKS = frozenset({"isinstance", "issubclass", "super"})

GIVE_NOTHING = frozenset({"abc.ABC", "object", "torch.nn.Module", "torch.nn.modules.module.Module"})
"""Bases outside of the project that give their objects no attributes which a training has."""


def only_bases(modules: Iterable[Module], lookup: Lookup) -> frozenset[Class]:
    """Return the classes with subclasses that are made, which are never made themselves."""
    modules = list(modules)
    classes = [cls for module in modules for cls in module.classes.values()]
    related = [cls for cls in classes if cls.children or cls.bases]
    if not any(cls.children for cls in related):
        return frozenset()
    made = _made(modules, lookup, related)
    return frozenset(
        cls
        for cls in related
        if cls not in made and not cls.node.decorator_list
        if any(sub in made for sub in cls.subclasses())
    )


def _made(modules: list[Module], lookup: Lookup, classes: list[Class]) -> set[Class]:
    """Return the classes that something other than the definition of a subclass, or a question, names."""
    known = {cls.name for cls in classes}
    known |= {
        alias.asname
        for module in modules
        for node in module.tree.nodes(ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None and alias.name in known
    }
    found = {cls for cls in classes if cls.node.decorator_list}
    spoken = set[str]()
    for module in modules:
        spoken |= {text for text in map(string, module.tree.nodes(ast.Constant)) if text in known}
        for node in module.tree.nodes(ast.Name, ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name not in known or not isinstance(node.ctx, ast.Load):
                continue
            meanings = [m for m in lookup.expression(module, node) if isinstance(m, Class)]
            if not meanings and isinstance(node, ast.Attribute):
                found |= {cls for cls in classes if cls.name == name}
            if meanings and not _only_asks(module, node, meanings):
                found.update(meanings)
        if any(_looking(module, lookup)):
            found.update(classes)
    return found | {cls for cls in classes if cls.name in spoken}


def _looking(module: Module, lookup: Lookup) -> Iterator[ast.Call]:
    """Yield the calls that may give a class by a name that is worked out."""
    for call in module.tree.nodes(ast.Call):
        name, first = last_name(call), call.args[0] if call.args else None
        if name not in _BY_NAME or string(first) is not None:
            continue
        asked = () if first is None else lookup.expression(module, first)
        if name != "getattr" or any(isinstance(meaning, Module) for meaning in asked):
            yield call


def _only_asks(module: Module, node: ast.expr, meant: list[Class]) -> bool:
    """Tell whether a class is named as a base, in a question about objects, for a type, or for a method of it."""
    tree = module.tree
    up = tree.parent(node)
    if isinstance(up, ast.Attribute):
        methods = [cls.method(up.attr) for cls in meant]
        return all(m is not None and m.takes_receiver and not m.is_class for m in methods)
    inner: ast.AST = node
    while isinstance(up, ast.Tuple | ast.Subscript | ast.BinOp | ast.List):
        inner, up = up, tree.parent(up)
    if isinstance(up, ast.ClassDef):
        return inner in up.bases
    if isinstance(up, ast.Call):
        return inner is not up.func and last_name(up) in _ASKS
    if isinstance(up, ast.arg | ast.AnnAssign):
        return inner is up.annotation
    return isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef) and inner is up.returns
