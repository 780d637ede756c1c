"""Which names a computed attribute may have: the strings that all calls in sight give a parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from amp_migrate.facts.constants import string
from amp_migrate.modules.binding import bind
from amp_migrate.modules.model import CallSite, Function, Module

_Mention = tuple[Module, ast.AST]


class Spoken:
    """Asks for the strings that a parameter may be, by every place that says the name of its function."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self._modules = modules
        self._mentions: dict[str, list[_Mention]] | None = None

    def names(self, function: Function, node: ast.expr) -> frozenset[str] | None:
        """Return the strings that an expression of a function may be; None where that is not told."""
        constant = string(node)
        if constant is not None:
            return frozenset({constant})
        if not isinstance(node, ast.Name) or not self._is_given(function, node):
            return None
        found: set[str] = set()
        for module, mention in self._said(function.name):
            given = _given(module, function, mention, node.id)
            if given is None:
                return None
            found.add(given)
        return frozenset(found) or None

    def _is_given(self, function: Function, node: ast.Name) -> bool:
        """Tell whether a name is a parameter of a function, bound by its calls alone."""
        scopes = function.module.scopes
        if node.id not in function.parameters.names or scopes.owner(node) is not function.scope:
            return False
        bindings = scopes.bindings(function.scope, node.id)
        return all(isinstance(binding, ast.arg) for binding in bindings)

    def _said(self, name: str) -> list[_Mention]:
        if self._mentions is None:
            self._mentions = {}
            for module in self._modules.values():
                for said, node in _mentioned(module):
                    self._mentions.setdefault(said, []).append((module, node))
        return self._mentions.get(name, [])


def _mentioned(module: Module) -> Iterator[tuple[str, ast.AST]]:
    for node in module.tree.parents:
        if isinstance(node, ast.Attribute):
            yield node.attr, node
        elif isinstance(node, ast.Name):
            yield node.id, node
        elif isinstance(node, ast.alias) and node.asname is not None:
            yield node.name, node
        elif (text := string(node)) is not None:
            yield text, node


def _given(module: Module, function: Function, mention: ast.AST, name: str) -> str | None:
    """Return the string that a call of what may be a function gives its parameter; None for any other mention."""
    call = module.tree.parent(mention)
    if not isinstance(call, ast.Call) or call.func is not mention:
        return None
    passed = bind(CallSite(function, call, bound=function.takes_receiver), function)
    return string(passed.given.get(name))
