"""Which call of a class made the object that an expression names, where no other one can have."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence

from amp_migrate.modules.lookup import Lookup
from amp_migrate.modules.model import Class, Module
from amp_migrate.values.nodes import Nodes
from amp_migrate.values.objects import MadeAt

_DEEPEST = 20
_PLAIN = frozenset(
    {"ABC", "Generic", "Protocol", "abc.ABC", "object", "typing.Generic", "typing.Protocol"}
)
_KINDS = ("collections.abc.", "typing.")
# Methods by which a class decides itself what a call of it gives, or what its objects have.
_DECIDING = frozenset(
    {"__getattr__", "__getattribute__", "__new__", "__setattr__", "__copy__", "__deepcopy__"}
)


class Makers:
    """The objects of some classes that are bound to a name once, and for good."""

    def __init__(self, nodes: Nodes, modules: Sequence[Module], classes: Collection[Class]) -> None:
        self._lookup: Lookup = nodes.lookup
        self._stored = nodes.stored
        self._known: dict[ast.expr, MadeAt | None] = {}
        self.made: dict[ast.Call, MadeAt] = {}
        for module in modules if classes else ():
            for statement in module.tree.nodes(ast.Assign, ast.AnnAssign):
                call = statement.value
                if not isinstance(call, ast.Call):
                    continue
                meanings = self._lookup.expression(module, call.func)
                cls = meanings[0] if len(meanings) == 1 else None
                if isinstance(cls, Class) and cls in classes and _is_plain(cls):
                    self.made[call] = MadeAt(cls, call)

    def of(self, module: Module, node: ast.expr) -> MadeAt | None:
        """Return what made the object of an expression; None where that is not known, or it may be several."""
        if not self.made:
            return None
        if node not in self._known:
            self._known[node] = self._find(module, node, _DEEPEST)
        return self._known[node]

    def _find(self, module: Module, node: ast.expr, deep: int) -> MadeAt | None:
        if isinstance(node, ast.Call):
            return self.made.get(node)
        if isinstance(node, ast.Name) and (owner := module.scopes.owner(node)) is not None:
            return self._bound(module, module.scopes.bindings(owner, node.id), deep)
        if isinstance(node, ast.Attribute):
            meanings = self._lookup.expression(module, node.value)
            if len(meanings) == 1 and isinstance(meanings[0], Module):
                return self._of_module(meanings[0], node.attr, deep)
        return None

    def _of_module(self, module: Module, name: str, deep: int) -> MadeAt | None:
        if name in self._stored:
            return None
        return self._bound(module, module.scopes.bindings(module.tree.module, name), deep)

    def _bound(self, module: Module, bindings: Sequence[ast.AST], deep: int) -> MadeAt | None:
        """Return what made the object of a variable by all that is bound to it."""
        if len(bindings) != 1 or not deep:
            return None
        binding, up = bindings[0], module.tree.parent(bindings[0])
        if isinstance(binding, ast.alias):
            source = self._lookup.source(module, up) if isinstance(up, ast.ImportFrom) else None
            if not isinstance(source, Module):
                return None
            return self._of_module(source, binding.name, deep - 1)
        if not isinstance(binding, ast.Name) or not isinstance(up, ast.Assign | ast.AnnAssign):
            return None
        if binding not in _targets(up) or up.value is None or binding.id in self._stored:
            return None
        return self._find(module, up.value, deep - 1)


def _is_plain(cls: Class) -> bool:
    """Tell whether each call of a class makes another object, as Python does by itself."""
    return not any(
        one.node.keywords
        or one.node.decorator_list
        or not _DECIDING.isdisjoint(one.methods)
        or not all(name in _PLAIN or name.startswith(_KINDS) for name in one.external_bases)
        for one in cls.mro()
    )


def _targets(statement: ast.Assign | ast.AnnAssign) -> Iterable[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]
