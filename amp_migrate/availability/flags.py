"""Which options of a program are not bools, so that `enabled=` needs `bool(...)` around them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.facts.below import outcomes
from amp_migrate.facts.closure import closure
from amp_migrate.facts.constants import is_none, string
from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import path
from amp_migrate.flow.condition import entry, is_looked_up
from amp_migrate.project import Module, Project
from amp_migrate.project.once import kept

_GIVES_OTHERS = frozenset({"float", "input", "int", "len", "str"})
_OF_DICTIONARIES = frozenset({"get", "items", "keys", "pop", "setdefault", "values"})


def not_bools(project: Project, modules: Iterable[Module]) -> frozenset[str]:
    """Return the names of options and parameters of files whose values are strings or numbers, of settings that may be missing, and of what holds others.

    autocast raises TypeError for an `enabled` that is no bool.
    """
    modules = list(modules)
    asked = not_bools, frozenset(module.path for module in modules)
    return kept(project, asked, lambda: _not_bools(project, modules))


def _not_bools(project: Project, modules: list[Module]) -> frozenset[str]:
    found: set[str] = set()
    copies: dict[str, set[str]] = {}

    def bind(module: Module, names: Iterable[str], value: ast.expr) -> None:
        held, loose = set(names) - {""}, False
        for part in (p for p in outcomes(value) if not project.apex(module, p)):
            copied = last_name(part) or entry(part)
            copies.setdefault(copied, set()).update(held)
            loose = loose or _is_loose(part)
        found.update(held if loose else ())

    for module in modules:
        for call in module.tree.nodes(ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
                name = _other_than_bool(call)
                if name is not None:
                    found.add(name)
            levels = (last_name(k.value) for k in call.keywords if k.arg == "opt_level")
            found |= {level for level in levels if level}
            for callee in project.callees(call):
                for name, value in project.given(call, callee).items():
                    bind(module, [name], value)
            found |= _collections(call)
        for arguments in module.tree.nodes(ast.arguments):
            found |= _defaulted(arguments)
        found |= {last_name(node.value) for node in module.tree.nodes(ast.Subscript)} - {""}
        held = (_holder(project, module, node) for node in module.tree.nodes(ast.Attribute))
        found |= {name for name in held if name is not None}
        for statement in module.tree.nodes(ast.Assign, ast.AnnAssign, ast.NamedExpr):
            targets = statement.targets if isinstance(statement, ast.Assign) else ()
            if isinstance(statement, ast.AnnAssign | ast.NamedExpr):
                targets = [statement.target]
            if (given := getattr(statement, "value", None)) is not None:
                bind(module, (last_name(t) or entry(t) for t in targets), given)
        for function in module.functions.values():
            for node in function.own_nodes:
                if isinstance(node, ast.Return) and node.value:
                    bind(module, [function.name], node.value)
    return frozenset(closure(found, lambda name: copies.get(name, ())))


def _collections(call: ast.Call) -> set[str]:
    """Return what a call shows to be a dictionary: ``f(**settings)``, ``settings.get(...)``."""
    held = [keyword.value for keyword in call.keywords if keyword.arg is None]
    if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_DICTIONARIES:
        held.append(call.func.value)
    return {last_name(node) for node in held if not isinstance(node, ast.Call)} - {""}


def _holder(project: Project, module: Module, node: ast.Attribute) -> str | None:
    """Return the path of what an attribute is read of that is an attribute of an object itself: ``cfg.amp`` of ``cfg.amp.level``."""
    held = node.value
    imported = not isinstance(held, ast.Attribute) or project.external(module, held) is not None
    return None if imported else path(held)


def _is_loose(node: ast.expr) -> bool:
    """Tell whether an expression is a text, a number or None, or may be missing."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in _GIVES_OTHERS
    return is_looked_up(node) or (
        isinstance(node, ast.Constant) and not isinstance(node.value, bool)
    )


def _defaulted(arguments: ast.arguments) -> set[str]:
    """Return the parameters that are None, a string or a number where nothing is given for them."""
    positional = [*arguments.posonlyargs, *arguments.args]
    given = positional[len(positional) - len(arguments.defaults) :]
    pairs = [*zip(given, arguments.defaults, strict=True)]
    pairs += [
        (a, d)
        for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if d is not None
    ]
    return {
        a.arg for a, d in pairs if isinstance(d, ast.Constant) and not isinstance(d.value, bool)
    }


def _other_than_bool(call: ast.Call) -> str | None:
    keywords = {k.arg: k.value for k in call.keywords if k.arg}
    action = keywords.get("action")
    if action is not None:
        return None
    kind = keywords.get("type")
    named = kind is None or (isinstance(kind, ast.Name) and kind.id in ("int", "float", "str"))
    default = keywords.get("default")
    if not named or (isinstance(default, ast.Constant) and isinstance(default.value, bool)):
        return None
    return _destination(call, keywords.get("dest"))


def _destination(call: ast.Call, given: ast.expr | None) -> str | None:
    destination = string(given)
    if destination is not None:
        return destination
    names = [name for name in map(string, call.args) if name is not None]
    long = [name for name in names if name.startswith("--")] or names
    return long[0].lstrip("-").replace("-", "_") if long else None


def numbers(modules: Iterable[Module]) -> dict[str, bool]:
    """Return the command-line options of files whose values are numbers, and whether they always have one."""
    found: dict[str, bool] = {}
    others: set[str] = set()
    for call in (call for module in modules for call in module.tree.nodes(ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
            keywords = {k.arg: k.value for k in call.keywords if k.arg}
            name = _destination(call, keywords.get("dest"))
            kind, default = keywords.get("type"), keywords.get("default")
            if name is not None and isinstance(kind, ast.Name) and kind.id in ("int", "float"):
                empty = default is None or (is_none(default))
                found[name] = found.get(name, True) and not empty
            elif name is not None:
                others.add(name)
    return {name: always for name, always in found.items() if name not in others}
