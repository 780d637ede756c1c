"""Where the scale of gradients cancels out or stays with them: divided by their norm or the scale, or only reduced."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.facts.closure import closure, spread
from amp_migrate.facts.constants import number
from amp_migrate.facts.paths import argument, spreads, stored, tail, variables
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import KNOWS_NO_SCALE, reduces
from amp_migrate.training.bindings import values_of

_SCALE = "get_scale"
_NORMS = frozenset({"clip_grad_norm", "clip_grad_norm_"})  # a clip of values would hide an overflow


class Magnitude:
    """Asks whether a value that is read from gradients depends on their scale, within one function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._tree = function.module.tree

    def cancels(self, node: ast.expr) -> bool:
        """Tell whether what is computed of a gradient does not depend on the scale."""
        return self._cancels(node, set())

    def _cancels(self, node: ast.expr, seen: set[ast.AST]) -> bool:
        if node in seen:
            return True
        seen.add(node)
        child: ast.AST = node
        up = self._tree.parent(node)
        while isinstance(up, ast.expr | ast.keyword):
            if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Div):
                other = up.right if child is up.left else up.left
                if self._has_scale(other) and not self._has_offset(other):
                    return not self._is_scaled_again(up)
            if isinstance(up, ast.Compare):
                return all(
                    _is_zero(side) for side in (up.left, *up.comparators) if side is not child
                )
            if isinstance(up, ast.Call) and child is not up.func:
                if tail(up) in KNOWS_NO_SCALE or self._is_reduced_in_place(up):
                    return True
            child, up = up, self._tree.parent(up)
        if isinstance(up, ast.Assign) and len(up.targets) == 1:
            return self._all_cancel(up.targets[0], seen)
        return False

    def _is_scaled_again(self, node: ast.expr) -> bool:
        """Tell whether a quotient is multiplied by something with the scale: ``grad / norm * norm``."""
        up = self._tree.parent(node)
        if not isinstance(up, ast.BinOp):
            return False
        other = up.right if node is up.left else up.left
        again = isinstance(up.op, ast.Mult) and self._has_scale(other)
        return again or self._is_scaled_again(up)

    def _is_reduced_in_place(self, call: ast.Call) -> bool:
        """Tell whether a call only adds up gradients of processes where they lie: their scale stays theirs."""
        return reduces(tail(call)) and isinstance(self._tree.parent(call), ast.Expr)

    def _all_cancel(self, target: ast.expr, seen: set[ast.AST]) -> bool:
        if not isinstance(target, ast.Name):
            return False
        reads = self._function.module.scopes.reads(self._function.scope, target.id)
        return bool(reads) and all(self._cancels(read, seen) for read in reads)

    def _has_offset(self, node: ast.AST) -> bool:
        """Tell whether a fixed number is added to what is multiplied by the scale: ``norm + eps`` is no multiple of it."""
        for part in self._parts(node):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub):
                sides = [self._has_scale(side) for side in (part.left, part.right)]
                if any(sides) and not all(sides):
                    return True
        return False

    def _has_scale(self, node: ast.AST) -> bool:
        """Tell whether an expression is multiplied by the scale: a norm of gradients, or the scale itself."""
        return any(
            isinstance(part, ast.Attribute) and part.attr in ("grad", _SCALE)
            for part in self._parts(node)
        )

    def _parts(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what an expression is made of, and what the names in it are bound to."""
        return spread([node], self._inner)

    def _inner(self, node: ast.AST) -> Iterator[ast.AST]:
        yield from ast.iter_child_nodes(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield from values_of(self._function.module, node)


def limit(project: Project, module: Module, call: ast.Call) -> ast.expr | None:
    """Return the norm to which torch holds gradients, where gradients that are k times as large want one k times as large."""
    kind = argument(call, "norm_type", 2)
    alike = kind is None or (number(kind) or 0) > 0
    if project.lookup.called(module, call) not in _NORMS or spreads(call) or not alike:
        return None
    return None if project.callees(call) else argument(call, "max_norm", 1)


def times_scale(node: ast.expr | None) -> tuple[ast.expr, ast.expr] | None:
    """Return what is multiplied by ``scaler.get_scale()``, and that scaler."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if (scaler := scale_of(other)) is not None:
                return one, scaler
    return None


def unscaled(node: ast.expr) -> ast.expr:
    """Return a limit without the loss scale that it is multiplied by."""
    found = times_scale(node)
    return node if found is None else found[0]


def scale_of(node: ast.expr) -> ast.expr | None:
    """Return the scaler of ``scaler.get_scale()``."""
    asked = node.func if isinstance(node, ast.Call) and not node.args else None
    return asked.value if isinstance(asked, ast.Attribute) and asked.attr == _SCALE else None


def is_given_back(module: Module, call: ast.Call) -> bool:
    """Tell whether nothing is left of the scale in what a call gives: it is divided by that, or not used."""
    up = module.tree.parent(call)
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Div) and up.left is call:
        return scale_of(up.right) is not None
    return isinstance(up, ast.Expr)


def scaled_by(project: Project, module: Module, call: ast.Call) -> ast.expr | None:
    """Return whose scale multiplies the limit of a clip as it does gradients, and not the norm that it gives back."""
    scaled = times_scale(limit(project, module, call))
    return scaled[1] if scaled is not None and is_given_back(module, call) else None


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (0, None)


def derived(function: Function, reading: Iterable[ast.AST]) -> set[str]:
    """Return the names that hold what some nodes of a function read, or what is computed of that."""
    tree = function.module.tree
    statements = {tree.statement(node) for node in reading}
    first = {name for one in statements for name in _bound(one)}
    binding = [(_bound(n), _computed_of(n)) for n in function.own_nodes]

    def onward(name: str) -> Iterator[str]:
        for bound, read in binding:
            if name in read:
                yield from bound

    return set(closure(first, onward))


def _bound(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Assign):
        return {name for target in node.targets for name in stored(target)}
    if isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.comprehension):
        return stored(node.target)
    return set()


def _computed_of(node: ast.AST) -> set[str]:
    if isinstance(node, ast.For | ast.comprehension):
        return variables(node.iter)
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is not None:
        return variables(node.value)
    return set()
