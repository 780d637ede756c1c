"""Which attributes functions store, and which objects a store may be into."""

from __future__ import annotations

import ast
from functools import cached_property

from amp_migrate.facts.paths import path
from amp_migrate.facts.scopes import ScopeNode
from amp_migrate.project import Function, Module, Project


class Stores:
    """Asks of a project what is stored where; what it has found is kept."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._paths: dict[Module, dict[tuple[ScopeNode, str], ast.expr]] = {}

    def of(self, function: Function) -> frozenset[str]:
        """Return the attributes that a function, or one that it calls, may store."""
        return self._by_function.get(function, frozenset())

    def may_hold(self, target: ast.AST, text: str) -> bool:
        """Tell whether what an attribute or item is stored into may be the object of a path in the same function."""
        if not isinstance(target, ast.Attribute | ast.Subscript):
            return True
        module = self._project.module_of(target)
        named = self._named(module).get((module.scopes.scope_of(target), text))
        if named is None:
            return True
        values = self._project.values
        stored, asked = values.groups(module, target.value), values.groups(module, named)
        return not stored or not asked or bool(stored & asked)

    def _named(self, module: Module) -> dict[tuple[ScopeNode, str], ast.expr]:
        """Return an expression for every path that stands in a scope of a module."""
        if module not in self._paths:
            found: dict[tuple[ScopeNode, str], ast.expr] = {}
            for node in module.tree.nodes(ast.Name, ast.Attribute):
                text = path(node)
                if text is not None:
                    found.setdefault((module.scopes.scope_of(node), text), node)
            self._paths[module] = found
        return self._paths[module]

    @cached_property
    def _by_function(self) -> dict[Function, frozenset[str]]:
        own: dict[Function, set[str]] = {}
        for module, node in self._project.nodes(ast.Attribute):
            if not isinstance(node.ctx, ast.Load):
                function = self._project.function_of(module, node)
                own.setdefault(function, set()).add(node.attr)
        queue = list(own)
        while queue:
            function = queue.pop()
            for site in self._project.callers(function):
                held = own.setdefault(site.function, set())
                if not own[function] <= held:
                    held |= own[function]
                    queue.append(site.function)
        return {function: frozenset(names) for function, names in own.items()}
