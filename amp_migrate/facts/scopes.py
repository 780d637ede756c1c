"""Which scope binds each name of one file, by the rules of Python."""

from __future__ import annotations

import ast
import builtins
from functools import cached_property

from amp_migrate.facts.paths import bound_name, imported_name
from amp_migrate.facts.tree import Tree

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
ScopeNode = (
    ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | Comprehension
)

_BUILT_IN = frozenset(dir(builtins))
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BODIES = (*_DEFINITIONS, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_AROUND = frozenset({*_BODIES, *_COMPREHENSIONS, ast.comprehension, ast.Module})


class Scopes:
    """The names that each scope of a file binds.

    A binding is the node that makes it: an `ast.alias`, a ``def`` or ``class``, an `ast.arg`, a stored
    `ast.Name`, an `ast.ExceptHandler`, a match pattern, or ``globals()["name"]`` that is assigned to.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.stars: list[ast.ImportFrom] = []
        self._bound: dict[ScopeNode, dict[str, list[ast.AST]]] = {}
        self._globals: dict[ScopeNode, set[str]] = {}
        self._nonlocals: dict[ScopeNode, set[str]] = {}
        self._found: dict[tuple[ScopeNode, str], ScopeNode | None] = {}
        self._around: dict[ast.AST, ScopeNode] = {}
        self._collect()

    def scope_of(self, node: ast.AST) -> ScopeNode:
        """Return the scope in which `node` is evaluated, or binds its name."""
        found = self._around.get(node)
        if found is None:
            found = self._around[node] = self._scope_around(node)
        return found

    def _scope_around(self, node: ast.AST) -> ScopeNode:
        parents = self.tree.parents
        child: ast.AST = node
        up = parents.get(node)
        while up is not None:
            if type(up) not in _AROUND:
                pass
            elif isinstance(up, _BODIES):
                if isinstance(child, ast.stmt) or (isinstance(up, ast.Lambda) and child is up.body):
                    return up
                if isinstance(child, ast.arguments) and isinstance(node, ast.arg):
                    return up
            elif isinstance(up, _COMPREHENSIONS):
                return up
            elif isinstance(up, ast.comprehension) and child is up.iter:
                holder = parents[up]
                if isinstance(holder, _COMPREHENSIONS) and holder.generators[0] is up:
                    up = holder
            elif isinstance(up, ast.Module):
                return up
            child, up = up, parents.get(up)
        return self.tree.module

    def find(self, scope: ScopeNode, name: str) -> ScopeNode | None:
        """Return the scope that binds `name` as seen from `scope`; None for built-ins and the like."""
        key = (scope, name)
        if key not in self._found:
            self._found[key] = self._search(scope, name)
        return self._found[key]

    def owner(self, name: ast.Name) -> ScopeNode | None:
        """Return the scope that binds the variable read or stored by `name`."""
        return self.find(self.scope_of(name), name.id)

    def sees(self, scope: ScopeNode, name: ast.Name) -> bool:
        """Tell whether a name means the variable that a scope sees by it, which may be another scope's."""
        return self.find(scope, name.id) is self.owner(name)

    def builtin(self, node: ast.expr) -> str | None:
        """Return the name of what Python has built in, where an expression is one."""
        if not isinstance(node, ast.Name) or node.id not in _BUILT_IN:
            return None
        return node.id if self.owner(node) is None else None

    def is_local(self, name: ast.Name) -> bool:
        """Tell whether `name` is a variable of a function."""
        return isinstance(self.owner(name), ast.FunctionDef | ast.AsyncFunctionDef)

    def bindings(self, scope: ScopeNode, name: str) -> list[ast.AST]:
        """Return the nodes that bind `name` in `scope`, in source order."""
        return self._bound.get(scope, {}).get(name, [])

    def bound(self, name: ast.Name) -> list[ast.AST]:
        """Return the nodes that bind the variable read or stored by `name`; none for built-ins and the like."""
        owner = self.owner(name)
        return [] if owner is None else self.bindings(owner, name.id)

    def values(self, scope: ScopeNode, name: str) -> list[ast.expr]:
        """Return what is assigned to a variable of a scope, where that is seen."""
        found = (assigned(self.tree, binding) for binding in self.bindings(scope, name))
        return [value for value in found if value is not None]

    def only_value(self, node: ast.expr) -> ast.expr | None:
        """Return what the only binding of a variable assigns to it; None for anything else."""
        bound = self.bound(node) if isinstance(node, ast.Name) else []
        return assigned(self.tree, bound[0]) if len(bound) == 1 else None

    def spelt(self, owner: ScopeNode | None, name: str) -> list[ast.Name]:
        """Return where a text reads or stores a variable of a scope, or a built-in where that is None."""
        return [node for node in self._spelt.get(name, ()) if self.owner(node) is owner]

    def reads(self, owner: ScopeNode | None, name: str) -> list[ast.Name]:
        """Return where a text reads a variable of a scope."""
        return [node for node in self.spelt(owner, name) if isinstance(node.ctx, ast.Load)]

    @cached_property
    def _spelt(self) -> dict[str, list[ast.Name]]:
        found: dict[str, list[ast.Name]] = {}
        for node in self.tree.nodes(ast.Name):
            found.setdefault(node.id, []).append(node)
        return found

    def names(self, scope: ScopeNode) -> list[str]:
        """Return the names bound in `scope`."""
        return list(self._bound.get(scope, ()))

    def _search(self, scope: ScopeNode, name: str) -> ScopeNode | None:
        if name in self._globals.get(scope, ()):
            return self.tree.module
        here = name in self._bound.get(scope, ()) and name not in self._nonlocals.get(scope, ())
        if here:
            return scope
        if isinstance(scope, ast.Module):
            return None
        up = self.scope_of(scope)
        while isinstance(up, ast.ClassDef):
            up = self.scope_of(up)
        return self.find(up, name)

    def _collect(self) -> None:
        stored: list[tuple[ast.AST, str]] = []
        for node in self.tree.parents:
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Store):
                    stored.append((node, node.id))
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                stored += self._imported(node)
            elif isinstance(node, ast.Global):
                self._globals.setdefault(self.scope_of(node), set()).update(node.names)
            elif isinstance(node, ast.Nonlocal):
                self._nonlocals.setdefault(self.scope_of(node), set()).update(node.names)
            elif isinstance(node, ast.Subscript):
                key = global_name(node)
                if key is not None and isinstance(node.ctx, ast.Store):
                    names = self._bound.setdefault(self.tree.module, {})
                    names.setdefault(key, []).append(node)
            elif not isinstance(node, ast.alias) and (name := bound_name(node)):
                stored.append((node, name))
        free = []
        for node, name in stored:
            if name in self._nonlocals.get(self._own(node), ()):
                free.append((node, name))
            else:
                self._bind(self._target(node, name), node, name)
        for node, name in free:
            self._bind(self.find(self._own(node), name) or self._own(node), node, name)
        self._found.clear()
        for names in self._bound.values():
            for nodes in names.values():
                nodes.sort(key=_place)

    def _imported(self, node: ast.Import | ast.ImportFrom) -> list[tuple[ast.AST, str]]:
        found: list[tuple[ast.AST, str]] = []
        for alias in node.names:
            if alias.name == "*" and isinstance(node, ast.ImportFrom):
                self.stars.append(node)
            else:
                found.append((alias, imported_name(alias)))
        return found

    def _bind(self, scope: ScopeNode, node: ast.AST, name: str) -> None:
        self._bound.setdefault(scope, {}).setdefault(name, []).append(node)

    def _target(self, node: ast.AST, name: str) -> ScopeNode:
        scope = self._own(node)
        return self.tree.module if name in self._globals.get(scope, ()) else scope

    def _own(self, node: ast.AST) -> ScopeNode:
        """Return the scope whose statement a binding is: that of a walrus is around its comprehensions."""
        scope = self.scope_of(node)
        if isinstance(self.tree.parents[node], ast.NamedExpr):
            while isinstance(scope, _COMPREHENSIONS):
                scope = self.scope_of(scope)
        return scope


def assigned(tree: Tree, binding: ast.AST) -> ast.expr | None:
    """Return the expression that a stored name is bound to, as in ``name = value`` or ``a, name = x, value``."""
    parent = tree.parents.get(binding)
    if isinstance(parent, ast.Assign):
        return parent.value
    if isinstance(parent, (ast.AnnAssign, ast.NamedExpr)):
        return parent.value
    if isinstance(parent, ast.Tuple):
        statement = tree.parents.get(parent)
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Tuple):
            values = statement.value.elts
            place = next(i for i, item in enumerate(parent.elts) if item is binding)
            plain = not any(isinstance(item, ast.Starred) for item in (*parent.elts, *values))
            if plain and len(values) == len(parent.elts):
                return values[place]
    return None


def assignments(tree: Tree) -> list[ast.Assign | ast.AnnAssign]:
    """Return the assignments of a module, with and without a type."""
    return [*tree.nodes(ast.Assign, ast.AnnAssign)]


def targets_of(node: ast.AST | None) -> list[ast.expr]:
    """Return what an assignment assigns to, whether it states a type or not, or is an expression; nothing for other nodes."""
    if isinstance(node, ast.AnnAssign | ast.NamedExpr):
        return [node.target]
    return list(node.targets) if isinstance(node, ast.Assign) else []


def global_name(node: ast.Subscript) -> str | None:
    """Return the name of the global variable that ``globals()["name"]`` is; None for other items."""
    call, key = node.value, node.slice
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        return None
    if call.func.id != "globals" or not isinstance(key, ast.Constant):
        return None
    return key.value if isinstance(key.value, str) else None


def _place(node: ast.AST) -> tuple[int, int]:
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
