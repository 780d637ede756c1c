"""An attribute that gets amp or None from callers, or is None in the body of its class: its tests ask the GradScaler."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from amp_migrate.apex.emptied import (
    asked_otherwise,
    by_name,
    gets_amp,
    is_run,
    may_be_none,
    test_of,
)
from amp_migrate.apex.sites import HANDED_ON, Site
from amp_migrate.facts.constants import is_none
from amp_migrate.project import Module, Project


@dataclass(frozen=True, slots=True)
class Tested:
    """A test whether an attribute holds amp, and whether it asks for that."""

    module: Module
    attribute: ast.Attribute
    test: ast.expr
    positive: bool


@dataclass(frozen=True, slots=True)
class Blank:
    """``amp = None`` in the body of a class."""

    module: Module
    statement: ast.Assign


def tested(project: Project, site: Site, target: ast.Attribute) -> list[Tested | Blank]:
    """Return the tests of an attribute that amp is stored in, and what makes it None for a whole class.

    Raises `Cannot` where something else may ask what it holds.
    """
    if target.attr not in may_be_none(project):
        return []
    found = list(_tests(project, target))
    if any(isinstance(item, Tested) for item in found) and not _only_tested(project, target):
        raise asked_otherwise(site.module, target, target)
    return found


def _tests(project: Project, target: ast.Attribute) -> Iterator[Tested | Blank]:
    for module in project.modules.values():
        for node in module.tree.attributes(target.attr):
            asked = test_of(module.tree, node)
            if asked is not None and project.external(module, node) in HANDED_ON:
                yield Tested(module, node, *asked)
        for statement in module.tree.nodes(ast.Assign):
            names = [t.id for t in statement.targets if isinstance(t, ast.Name)]
            if isinstance(module.tree.holder(statement), ast.ClassDef) and is_none(statement.value):
                if names == [target.attr] and len(statement.targets) == 1:
                    yield Blank(module, statement)


def _only_tested(project: Project, target: ast.Attribute) -> bool:
    """Tell whether the attribute is only given amp, used for it, tested, or handed on."""
    for module in project.modules.values():
        if any(by_name(call, target.attr) for call in module.tree.nodes(ast.Call)):
            return False
        for node in module.tree.attributes(target.attr):
            if project.external(module, node) not in HANDED_ON:
                continue
            if not isinstance(node.ctx, ast.Load):
                if not gets_amp(project, module, node):
                    return False
            elif test_of(module.tree, node) is None and not (
                isinstance(module.tree.parent(node), ast.Attribute) or is_run(project, module, node)
            ):
                return False
    return True
