"""Classes of a program that are derived from one of Apex: what makes their objects, where all of that is seen."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import is_super
from amp_migrate.project import Class, Module
from amp_migrate.rules.base import FileContext
from amp_migrate.rules.rest.found.type_names import names_type


def derived(site: Site) -> ast.ClassDef | None:
    """Return the class that a use names as a base of."""
    up = site.module.tree.parent(site.node)
    return up if isinstance(up, ast.ClassDef) and site.node in up.bases else None


def constructions(context: FileContext, site: Site, cls: ast.ClassDef) -> list[ast.Call] | None:
    """Return the calls that hand arguments to the constructor of the base: by `super()`, or those that make objects.

    None where there are none, or some may be out of sight: in another file, by a class derived in turn, or by the class as a value.
    """
    own = [n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    if own:
        calls = [n for n in ast.walk(own[0]) if isinstance(n, ast.Call) and _is_super_init(n)]
        return calls if len(calls) == 1 else None
    found: list[ast.Call] = []
    for module, node in _mentions(context, cls):
        up = module.tree.parent(node)
        if module is site.module and (call := module.tree.call_of(node)) is not None:
            found.append(call)
        elif isinstance(up, ast.alias | ast.ImportFrom) or not names_type(context, module, node):
            return None
    return found or None


def _is_super_init(call: ast.Call) -> bool:
    """Tell whether a call is ``super().__init__(...)``."""
    func = call.func
    return isinstance(func, ast.Attribute) and func.attr == "__init__" and is_super(func.value)


def _mentions(context: FileContext, cls: ast.ClassDef) -> Iterator[tuple[Module, ast.expr]]:
    """Yield what means a class, in all files; its name in calls of `super` apart."""
    for module in context.project.modules.values():
        if cls.name not in module.tree.text:
            continue
        for node in module.tree.nodes(ast.Name, ast.Attribute):
            up = module.tree.parent(node)
            if up is not None and is_super(up):
                continue
            meaning = context.project.resolve(module, node)
            if isinstance(meaning, Class) and meaning.node is cls:
                yield module, node
