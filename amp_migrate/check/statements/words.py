"""What only one of two texts calls something by: a variable of a function or file, an attribute."""

from __future__ import annotations

import ast
import builtins
from functools import cached_property

from amp_migrate.check.events.sides import Side, key
from amp_migrate.facts.constants import is_none, string
from amp_migrate.facts.paths import tail
from amp_migrate.project import Function, Module
from amp_migrate.training.bindings import own_part

NAMES = ast.Name | ast.Attribute
_BUILTINS = frozenset(vars(builtins))
_NAMESPACES = frozenset({"dir", "locals", "vars"})


class Words:
    """Tells what one side binds and the other does not."""

    def __init__(self, side: Side, other: Side) -> None:
        self._side = side
        self._other = other

    def alone(self, function: Function, node: ast.Name | ast.Attribute) -> bool:
        """Tell whether a variable or attribute that stands in a function of this side is of this side only."""
        if isinstance(node, ast.Attribute):
            return node.attr in self._attributes
        owner = function.module.scopes.owner(node)
        if owner is None:
            return node.id not in _BUILTINS and node.id not in self._read
        if isinstance(owner, ast.ClassDef):
            return node.id in self._attributes
        if isinstance(owner, ast.Module):
            module = self._modules.get(function.module.path)
            return module is None or not module.scopes.bindings(module.tree.module, node.id)
        if not isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
            return False  # what an expression binds for itself
        home = key(self._side.project.function_of(function.module, owner.body[0]))
        return not any(
            f.module.scopes.bindings(f.scope, node.id) for f in self._other.functions.get(home, ())
        )

    def looked_for(self, function: Function, node: ast.AST) -> bool:
        """Tell whether an expression looks among the names of its file for one that only this side binds: ``"amp" in globals()``."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            key, held = node.left, node.comparators[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            key, held = node.args[0], node.func.value
        else:
            return False
        name = string(key)
        if name is None or not isinstance(held, ast.Call) or held.args:
            return False
        named = tail(held)
        if named != "globals" and (function.node is not None or named not in _NAMESPACES):
            return False
        own, other = function.module, self._modules.get(function.module.path)
        bound = own.scopes.bindings(own.tree.module, name)
        return bool(bound) and not (other and other.scopes.bindings(other.tree.module, name))

    @cached_property
    def _attributes(self) -> frozenset[str]:
        return _attributes(self._side) - _attributes(self._other)

    @cached_property
    def _read(self) -> frozenset[str]:
        """The names that the other side reads or binds."""
        nodes = (node for _, node in self._other.project.nodes(ast.Name))
        return frozenset(n.id for n in nodes if isinstance(n, ast.Name))

    @cached_property
    def _modules(self) -> dict[str, Module]:
        return {module.path: module for module in self._other.project.modules.values()}


def emptied(side: Side) -> frozenset[str]:
    """Return the attributes that are None somewhere in a text, in whatever way they are set."""
    project, found = side.project, set()
    for module in project.modules.values():
        for node in module.tree.nodes(ast.Name, ast.Attribute):
            if not isinstance(node.ctx, ast.Store):
                continue
            if isinstance(node, ast.Name) and not isinstance(
                module.scopes.owner(node), ast.ClassDef
            ):
                continue
            whole = getattr(module.tree.statement(node), "value", None)
            if whole is not None and is_none(own_part(project, module, node, whole)):
                found.add(word(node))
    for _, call in project.nodes(ast.Call):
        if tail(call) == "setattr" and len(call.args) == 3 and is_none(call.args[2]):
            found.add(string(call.args[1]) or "")
    return frozenset(found)


def word(node: ast.Name | ast.Attribute) -> str:
    """Return the last word of a name or attribute."""
    return node.id if isinstance(node, ast.Name) else node.attr


def _attributes(side: Side) -> frozenset[str]:
    """Return the words that may be attributes of a class, of an object or of a file."""
    nodes = (node for _, node in side.project.nodes(ast.Attribute))
    found = {
        n.attr for n in nodes if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)
    }
    for module in side.project.modules.values():
        for scope in (module.tree.module, *module.tree.nodes(ast.ClassDef)):
            assert isinstance(scope, ast.Module | ast.ClassDef)
            found.update(module.scopes.names(scope))
    return frozenset(found)
