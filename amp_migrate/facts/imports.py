"""What the imported names of one file mean."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from amp_migrate.facts.scopes import ScopeNode, Scopes, assigned
from amp_migrate.facts.tree import Tree

_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Imported:
    """What one `ast.alias` imports.

    `module` is absolute where the file's own dotted name allows it; `level` counts the leading dots as
    written; `member` is the name taken from the module, None for a plain ``import``.
    `binds` is the dotted name that the bound name stands for: ``import a.b`` binds ``a`` to "a".
    """

    module: str
    level: int
    member: str | None
    binds: str


class Imports:
    """The imports of a file, by scope: ``Imports(tree, "package.module").qualified(node)``."""

    def __init__(self, tree: Tree, name: str = "", package: bool = False) -> None:
        """Read the imports of `tree`; `name` is its dotted name, `package` True for an ``__init__.py``."""
        self.tree = tree
        self.scopes = Scopes(tree)
        self._parents = name.split(".") if name else []
        if not package:
            self._parents = self._parents[:-1]

    def of(self, alias: ast.alias) -> Imported:
        """Return what `alias`, a part of an import statement of this file, imports."""
        statement = self.tree.parents[alias]
        if isinstance(statement, ast.ImportFrom):
            module = self.absolute(statement)
            binds = f"{module}.{alias.name}" if module else alias.name
            return Imported(module, statement.level, alias.name, binds)
        name = alias.name
        return Imported(name, 0, None, name if alias.asname else name.partition(".")[0])

    def absolute(self, statement: ast.ImportFrom) -> str:
        """Return the dotted name of the module that a ``from`` statement names, without its dots."""
        module = statement.module or ""
        if not statement.level:
            return module
        base = self._parents[: max(len(self._parents) - statement.level + 1, 0)]
        return ".".join([*base, *([module] if module else [])])

    def qualified(self, node: ast.expr) -> str | None:
        """Return the dotted name that a Name or Attribute means by the imports of this file alone.

        Plain aliases (``amp_mod = apex.amp``) are followed. Where a name is imported in several ways
        (``try`` and ``except``) the one from Apex wins, then the first. None for other variables.
        """
        return preferred(self._meanings(node, set(), 0))

    def _meanings(self, node: ast.expr, seen: set[tuple[ScopeNode, str]], depth: int) -> list[str]:
        if depth > _DEEPEST:
            return []
        if isinstance(node, ast.Attribute):
            return [f"{base}.{node.attr}" for base in self._meanings(node.value, seen, depth + 1)]
        if isinstance(node, ast.IfExp):
            body = self._meanings(node.body, seen, depth + 1)
            return body + self._meanings(node.orelse, seen, depth + 1)
        scope = self.scopes.owner(node) if isinstance(node, ast.Name) else None
        if not isinstance(node, ast.Name) or scope is None or (scope, node.id) in seen:
            return []
        seen.add((scope, node.id))
        found: list[str] = []
        for binding in self.scopes.bindings(scope, node.id):
            if isinstance(binding, ast.alias):
                found.append(self.of(binding).binds)
            elif isinstance(binding, (ast.Name, ast.Subscript)):
                value = assigned(self.tree, binding)
                found += self._meanings(value, seen, depth + 1) if value is not None else []
        return found


def last_name(node: ast.expr) -> str:
    """Return the last part of a Name or Attribute (a call's callee counts); "" for other expressions."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def preferred(names: Iterable[str]) -> str | None:
    """Return the name that belongs to Apex if there is one, else the first; None for none."""
    found = list(names)
    apex = [name for name in found if name == "apex" or name.startswith("apex.")]
    return next(iter([*apex, *found]), None)
