"""Registries of handlers: collections into which each key gets exactly one item, as on a bus of events."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import NamedTuple

from amp_migrate.facts.paths import path
from amp_migrate.facts.scopes import assigned
from amp_migrate.project import CallSite, Function, Module
from amp_migrate.protocol.code.program import Program

_CHANGES = frozenset(
    {
        *("add", "append", "appendleft", "clear", "extend", "insert", "pop", "popitem", "remove"),
        *("setdefault", "update", "__iadd__", "__setitem__"),
    }
)
_EMPTY = frozenset({"dict", "list", "OrderedDict", "defaultdict", "collections.defaultdict"})


class Item(NamedTuple):
    """The list that a loop goes over, or that something is put into: of a registry under a key, or itself one."""

    module: Module
    registry: ast.expr
    key: ast.expr | None


class Registries:
    """Asks whether exactly one thing is registered under the key that a loop goes over."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._project = program.project

    def holds_one(self, function: Function, over: ast.expr) -> bool:
        """Tell whether a loop goes over a list into which the program puts one item, once, before."""
        asked = _item(function.module, over)
        if asked is None or not self._begins_empty(asked):
            return False
        grows = self._grows(asked)
        if grows is None or (grows.key is None) is not (asked.key is None):
            return False
        within = self._project.function_of(grows.module, grows.registry)
        registered = self._keys(within, grows.key)
        if registered is None or len(set(registered)) != len(registered):
            return False
        if not all(self._runs_once(site) for site in self._project.calls_of(within)):
            return False
        wanted = self._keys(function, asked.key)
        return bool(wanted) and set(wanted or ()) <= set(registered)

    def _begins_empty(self, item: Item) -> bool:
        """Tell whether the one thing that is stored under the name of a registry is an empty collection."""
        objects = self._program.training.objects
        registry, module = item.registry, item.module
        values: list[ast.expr | None]
        if isinstance(registry, ast.Attribute):
            values = [value for _, _, value in objects.stored.get(registry.attr, ())]
        elif isinstance(registry, ast.Name) and (scope := module.scopes.owner(registry)):
            bound = module.scopes.bindings(scope, registry.id)
            values = [assigned(module.tree, binding) for binding in bound]
        else:
            return False
        return len(values) == 1 and _is_empty(values[0])

    def _grows(self, item: Item) -> Item | None:
        """Return the one place at which a registry is changed, by an item that is appended; None for anything else."""
        objects = self._program.training.objects
        groups = objects.groups(item.module, item.registry)
        found: list[Item] = []
        for method in _CHANGES:
            for module, call in objects.method_calls.get(method, ()):
                assert isinstance(call.func, ast.Attribute)
                inner = module.tree.parent(call)
                if method == "setdefault" and isinstance(inner, ast.Attribute):
                    if inner.attr == "append":
                        continue  # counted where the list that it gives is appended to
                changed = _item(module, call.func.value)
                if changed is None or not groups & objects.groups(module, changed.registry):
                    continue
                if method != "append" or len(call.args) != 1:
                    return None
                found.append(changed)
        return found[0] if len(found) == 1 and groups and not self._stores(groups) else None

    def _stores(self, groups: frozenset[int]) -> bool:
        objects = self._program.training.objects
        return any(
            groups & objects.groups(module, node.value)
            for module, node in self._project.nodes(ast.Subscript)
            if not isinstance(node.ctx, ast.Load)
        )

    def _keys(
        self, function: Function, key: ast.expr | None, above: Collection[Function] = ()
    ) -> list[object] | None:
        """Return what a key of a function is at its calls, once for each; None where it is not known at one of them."""
        sites = self._project.calls_of(function)
        if self._project.escapes(function):
            return None
        if key is None or isinstance(key, ast.Constant):
            return [key.value if isinstance(key, ast.Constant) else None] * len(sites)
        if not isinstance(key, ast.Name) or key.id not in function.parameters.names:
            return None
        if function in above:
            return None
        found: list[object] = []
        for _, where, given in self._project.received(function, key.id, itself=True):
            if isinstance(given, ast.Constant):
                found.append(given.value)
                continue
            handed = None if given is None else self._keys(where, given, {*above, function})
            if handed is None:
                return None
            found += handed
        return found

    def _runs_once(self, site: CallSite) -> bool:
        """Tell whether a call is a statement of a module, which runs when that is imported, and in no branch or loop."""
        tree = site.function.module.tree
        return site.function.node is None and tree.parent(tree.statement(site.call)) is tree.module


def _item(module: Module, node: ast.expr) -> Item | None:
    """Return which list an expression is."""
    if isinstance(node, ast.Name | ast.Attribute):
        return Item(module, node, None)
    if isinstance(node, ast.Subscript):
        return Item(module, node.value, node.slice)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        if node.func.attr in ("get", "setdefault"):
            return Item(module, node.func.value, node.args[0])
    return None


def _is_empty(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Dict):
        return not node.keys
    if isinstance(node, ast.List):
        return not node.elts
    if not isinstance(node, ast.Call) or path(node.func) not in _EMPTY:
        return False
    return all(isinstance(arg, ast.Name) and arg.id == "list" for arg in node.args)
