"""Levels that Apex raised for, which an option or a setting has where nobody chooses another: ``--opt-level`` without a default."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.levels import ALL
from amp_migrate.facts.constants import is_false, string
from amp_migrate.facts.paths import argument, tail
from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import where_set


def unchosen(project: Project, module: Module, call: ast.Call, level: ast.expr) -> str | None:
    """Return what is to be said of the level that a setting has by itself, and for which Apex raised; None if it is one of its levels."""
    if not isinstance(level, ast.Attribute) or _is_asked(module, call, level.attr):
        return None
    found = list(_options(module, level.attr)) or [
        default
        for other in project.modules.values()
        for read in (_options, _fields, _parameters)
        for default in read(other, level.attr)
    ]
    if not found or _is_set_elsewhere(project, level.attr):
        return None
    text = module.tree.segment(level)
    if all(isinstance(default, ast.Constant) and default.value is None for default in found):
        return (
            f"`{text}` is None where nobody chooses a level, and Apex raised for that; now it counts as a level that casts: "
            "give the option a default, or have it required"
        )
    names = {string(default) for default in found}
    if None in names or names & ALL:
        return None
    return (
        f"`{text}` is {ast.unparse(found[0])} where nobody chooses a level, and Apex, which has no such level, raised; now it "
        "counts as one that casts: give it a default of O0 to O3"
    )


def _is_asked(module: Module, call: ast.Call, name: str) -> bool:
    """Tell whether a test around a call asks for the level."""
    asked = (part for up, _ in module.tree.sides(call) for part in ast.walk(up.test))
    return any(isinstance(part, ast.Attribute) and part.attr == name for part in asked)


def _options(module: Module, name: str) -> Iterator[ast.expr]:
    """Yield the defaults of the options of the command line that give an attribute; one of those that must be given is a level."""
    for call in module.tree.nodes(ast.Call):
        if tail(call) != "add_argument":
            continue
        dest = argument(call, "dest")
        texts = map(string, call.args if dest is None else [dest])
        if name in {text.lstrip("-").replace("-", "_") for text in texts if text is not None}:
            required = argument(call, "required")
            given = required is not None and not is_false(required)
            yield ast.Constant("O1") if given else argument(call, "default") or ast.Constant(None)


def _fields(module: Module, name: str) -> Iterator[ast.expr]:
    """Yield what classes give a field of a name by themselves; one without is always given a level, but for where a constructor says how."""
    for node in module.tree.nodes(ast.AnnAssign):
        cls = module.tree.holder(node)
        named = isinstance(node.target, ast.Name) and node.target.id == name
        if named and isinstance(cls, ast.ClassDef):
            methods = (part for part in cls.body if isinstance(part, ast.FunctionDef))
            if node.value is not None:
                yield node.value
            elif not any(method.name == "__init__" for method in methods):
                yield ast.Constant("O1")


def _parameters(module: Module, name: str) -> Iterator[ast.expr]:
    """Yield the defaults of the parameters that constructors keep under their own name."""
    for function in module.functions.values():
        if (
            function.cls is None
            or function.name != "__init__"
            or name not in _kept(module, function)
        ):
            continue
        yield function.parameters.defaults.get(name) or ast.Constant("O1")


def _kept(module: Module, function: Function) -> set[str]:
    """Return the attributes that a constructor gives the value of a parameter of their name."""
    return {
        node.attr
        for node in module.tree.nodes(ast.Attribute)
        if isinstance(node.ctx, ast.Store) and function.is_receiver(node.value)
        if isinstance(value := assigned(module.tree, node), ast.Name) and value.id == node.attr
        if module.scopes.scope_of(node) is function.scope
    }


def _is_set_elsewhere(project: Project, name: str) -> bool:
    """Tell whether anything but a constructor that keeps its parameter may set the level."""
    keeps = (
        isinstance(value := assigned(module.tree, node), ast.Name) and value.id == name
        for module, node in where_set(project, name)
    )
    named = (
        tail(call) in ("set_defaults", "setattr", "update")
        and any(keyword.arg == name for keyword in call.keywords)
        for _, call in project.nodes(ast.Call)
    )
    return not all(keeps) or any(named)
