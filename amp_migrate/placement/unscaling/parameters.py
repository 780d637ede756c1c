"""What to clip natively where Apex clipped `amp.master_params(optimizer)`."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.paths import path, tail, walk
from amp_migrate.project import Function, Module
from amp_migrate.unit.apart import elements
from amp_migrate.unit.unit import Unit


def parameters_text(unit: Unit, site: Site) -> str:
    """Return the native text for a `master_params` site: ``model.parameters()`` where that is the same list."""
    optimizer = site.call.args[0] if site.call.args else site.call.keywords[0].value
    model = _model_of(unit, site, optimizer)
    if model is not None:
        return f"{model}.parameters()"
    text = site.module.tree.segment(optimizer)
    return f'[p for group in {text}.param_groups for p in group["params"]]'


def _model_of(unit: Unit, site: Site, optimizer: ast.expr) -> str | None:
    """Return how `site`'s function names the model whose `.parameters()` the optimizer was built from."""
    values = unit.project.values
    wanted = values.group(site.module, optimizer)
    if wanted is None:
        return None
    built = _built_from(unit, wanted)
    models = {
        values.group(s.module, node)
        for s in unit.of(Kind.INITIALIZE)
        for node in elements(unit.options[s].arguments.get("models"))
    }
    if built is None or built not in models or len(models) != 1:
        return None
    return _name_in(unit, site.function, built)


def _built_from(unit: Unit, optimizer: object) -> object | None:
    """Return the group of the model in ``optimizer = SGD(model.parameters(), ...)``; None if it is not unique."""
    values = unit.project.values
    found: set[object] = set()
    for module in unit.project.modules.values():
        for node in module.tree.nodes(ast.Assign):
            if not isinstance(node.value, ast.Call):
                continue
            if not any(values.group(module, t) == optimizer for t in node.targets):
                continue
            if not _is_constructor(node.value):
                continue
            first = _list_of(module, node.value.args[0]) if node.value.args else None
            if (
                isinstance(first, ast.Call)
                and isinstance(first.func, ast.Attribute)
                and first.func.attr == "parameters"
            ):
                found.add(values.group(module, first.func.value))
            else:
                found.add(None)
    return found.pop() if len(found) == 1 else None


def _list_of(module: Module, node: ast.expr) -> ast.expr:
    """Return the list of parameters itself, through a local name, ``list(...)`` and ``filter(test, ...)``."""
    tree = module.tree
    if isinstance(node, ast.Name):
        for other in tree.nodes(ast.Assign):
            if tree.scope(other) is tree.scope(node) and any(
                path(t) == node.id for t in other.targets
            ):
                return _list_of(module, other.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        if node.func.id in ("list", "filter"):
            return _list_of(module, node.args[-1])
    return node


def _is_constructor(call: ast.Call) -> bool:
    return tail(call) not in ("initialize", "load_state_dict")


def _name_in(unit: Unit, function: Function, group: object) -> str | None:
    """Return the shortest path by which a function names an object."""
    values = unit.project.values
    top = function.node if function.node is not None else function.module.tree.module
    found = {
        text
        for node in walk(top)
        if isinstance(node, ast.Name | ast.Attribute)
        and (text := path(node)) is not None
        and not text.endswith(".module")
        and values.group(function.module, node) == group
    }
    return min(found, key=lambda text: (len(text), text), default=None)
