"""Classes that wrap Apex beside a class that does the same natively: `ApexScaler` beside `NativeScaler`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.project import Class, Module, Project
from amp_migrate.unit.dual import is_native
from amp_migrate.unit.sites import Site

_NATIVE = ("torch.cuda.amp.", "torch.amp.", "torch.autocast")


def wrapper_of(project: Project, site: Site) -> Class | None:
    """Return the class that scales by Apex at a site and has a native twin: one of its file with the same methods."""
    cls = project.class_of(site.function)
    if cls is None or cls.children or cls.bases or cls.node not in cls.module.tree.module.body:
        return None
    methods = cls.methods.keys() - {"__init__"}
    for other in cls.module.classes.values():
        if other is not cls and methods <= other.methods.keys() and _is_native(project, other):
            return cls
    return None


def made(project: Project, cls: Class) -> list[tuple[Module, ast.Call]] | None:
    """Return the calls that make an object of a class; None where it is used in another way."""
    found: list[tuple[Module, ast.Call]] = []
    inside = set(ast.walk(cls.node))
    for module in project.modules.values():
        if cls.name not in module.tree.text:
            continue
        for node in _named(module, cls.name):
            call = module.tree.parent(node)
            if node in inside:
                continue
            if not isinstance(call, ast.Call) or call.func is not node:
                return None
            found.append((module, call))
        if any(n.value == cls.name for n in module.tree.nodes(ast.Constant)):
            return None
    return found


def chosen_beside_native(project: Project, site: Site) -> bool:
    """Tell whether a test chooses Apex by its name for a site, and its function names native AMP too.

    As in ``if backend == "apex"`` beside ``partial(torch.autocast, ...)``.
    """
    tree = site.module.tree
    tests = (up.test for up in tree.ancestors(site.node) if isinstance(up, ast.If))
    if not any("apex" in ast.unparse(test).lower() for test in tests):
        return False
    for node in ast.walk(site.function.scope):
        if isinstance(node, ast.Name | ast.Attribute):
            name = project.external(site.module, node)
            if name is not None and name.startswith(_NATIVE):
                return True
    return False


def _named(module: Module, name: str) -> Iterator[ast.expr]:
    yield from (n for n in module.tree.nodes(ast.Name) if n.id == name)
    yield from (n for n in module.tree.nodes(ast.Attribute) if n.attr == name)


def _is_native(project: Project, cls: Class) -> bool:
    return any(is_native(project, cls.module, n) for n in ast.walk(cls.node))
