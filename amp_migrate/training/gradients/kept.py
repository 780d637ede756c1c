"""Gradients that are put aside and given back as they were, as PGD does around its attacks: they keep their scale."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import tail
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Module, Project
from amp_migrate.project.reach import where_named
from amp_migrate.training.beliefs import LIST_PARAMETERS
from amp_migrate.training.events import Kind

KEEPING = {"keep": Kind.KEEP_GRAD, "give back": Kind.GIVE_GRAD}
"""The events of what a gradient may be for, besides being read or cleared."""
_COPIES = frozenset({"clone", "contiguous", "data", "detach"})


class Kept:
    """Knows the dictionaries of which nothing is taken but gradients, to be gradients again."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[tuple[Module | None, object, str], bool] = {}

    def is_put_aside(self, module: Module, node: ast.expr) -> bool:
        """Tell whether a gradient only goes into such a dictionary: ``self.kept[name] = p.grad.clone()``."""
        value = _copied(module.tree, node)
        up = module.tree.parent(value)
        return (
            isinstance(up, ast.Assign)
            and up.value is value
            and all(isinstance(t, ast.Subscript) and self._serves(module, t) for t in up.targets)
        )

    def is_given_back(self, module: Module, value: ast.expr | None) -> bool:
        """Tell whether a gradient becomes one that such a dictionary holds: ``p.grad = self.kept[name]``."""
        held = _uncopied(value)
        return isinstance(held, ast.Subscript) and self._serves(module, held)

    def _serves(self, module: Module, item: ast.Subscript) -> bool:
        held = item.value
        if isinstance(held, ast.Attribute):
            key: tuple[Module | None, object, str] = (None, None, held.attr)
        elif isinstance(held, ast.Name):
            key = (module, module.scopes.owner(held), held.id)
        else:
            return False
        if key not in self._known:
            self._known[key] = all(_is_usual(m.tree, node) for m, node in self._uses(module, held))
        return self._known[key]

    def _uses(
        self, module: Module, held: ast.Attribute | ast.Name
    ) -> Iterator[tuple[Module, ast.expr]]:
        """Yield whatever may be the dictionary: every attribute of its name, or the variable."""
        if isinstance(held, ast.Attribute):
            yield from where_named(self._project, held.attr)
            return
        for name in module.scopes.spelt(module.scopes.owner(held), held.id):
            yield module, name


def _is_usual(tree: Tree, node: ast.expr) -> bool:
    """Tell whether a dictionary is made empty, asked for a key, cleared, or an item of it is a gradient before and after."""
    up = tree.parent(node)
    if isinstance(up, ast.Assign | ast.AnnAssign) and up.value is not node:
        value = up.value
        return (isinstance(value, ast.Dict) and not value.keys) or (
            isinstance(value, ast.Call) and tail(value) == "dict" and not value.args
        )
    if isinstance(up, ast.Compare):
        return node in up.comparators and all(isinstance(op, ast.In | ast.NotIn) for op in up.ops)
    if isinstance(up, ast.Attribute):
        return up.attr == "clear"
    if not isinstance(up, ast.Subscript) or up.value is not node:
        return isinstance(up, ast.Delete)
    if not isinstance(up.ctx, ast.Load):
        stored = tree.parent(up)
        return isinstance(stored, ast.Delete) or (
            isinstance(stored, ast.Assign) and _is_gradient(stored.value)
        )
    value = _copied(tree, up)
    given = tree.parent(value)
    return (
        isinstance(given, ast.Assign)
        and given.value is value
        and all(isinstance(t, ast.Attribute) and t.attr == "grad" for t in given.targets)
    )


def _is_gradient(value: ast.expr) -> bool:
    copied = _uncopied(value)
    if isinstance(copied, ast.Attribute) and copied.attr == "data":
        copied = copied.value
    return isinstance(copied, ast.Attribute) and copied.attr == "grad"


def _uncopied(value: ast.expr | None) -> ast.expr | None:
    """Return what an expression is a copy of, by methods alone, or it itself; None for what another method gives."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value if value.func.attr in _COPIES else None
    return value


def moment(tree: Tree, node: ast.AST) -> ast.AST:
    """Return where gradients of all parameters are put aside or given back: where the loop over those that have some begins."""
    for up in tree.ancestors(node):
        if isinstance(up, ast.For):
            plain = isinstance(up.iter, ast.Call) and up.iter.func
            listed = isinstance(plain, ast.Attribute) and plain.attr in LIST_PARAMETERS
            return up.iter if listed else node
        if isinstance(up, ast.If) and not _asks_for_one(up.test):
            return node
        if isinstance(up, ast.stmt) and not isinstance(up, ast.Assign | ast.If):
            return node
    return node


def _asks_for_one(test: ast.expr) -> bool:
    """Tell whether a test asks whether a parameter has a gradient: ``p.requires_grad and p.grad is not None``."""
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.And) and all(map(_asks_for_one, test.values))
    if isinstance(test, ast.Compare):
        against = [type(op) for op in test.ops] == [ast.IsNot] and is_none(test.comparators[0])
        return against and isinstance(test.left, ast.Attribute) and test.left.attr == "grad"
    return isinstance(test, ast.Attribute) and test.attr == "requires_grad"


def _copied(tree: Tree, node: ast.expr) -> ast.expr:
    """Return the copy, of the same scale, that is taken of an expression, or it itself."""
    while isinstance(up := tree.parent(node), ast.Attribute) and up.attr in _COPIES:
        node = tree.call_of(up) or up
    return node
