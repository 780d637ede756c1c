"""Where one file uses native AMP: its GradScalers, their calls, and its autocast blocks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from amp_migrate.facts.imports import Imports
from amp_migrate.facts.paths import path, walk
from amp_migrate.facts.tree import FunctionNode, Tree

_SCALER = re.compile(r"torch\.(cuda\.)?amp(\.grad_scaler)?\.GradScaler")
_AUTOCAST = re.compile(r"torch\.((cuda\.)?amp(\.autocast_mode)?\.)?autocast")
_CLIPS = re.compile(r"torch\.nn\.utils(\.clip_grad)?\.clip_grad_(norm|value)_")

Scope = FunctionNode | ast.Module


class Native:
    """The native AMP of a file. A GradScaler is known by the path it is assigned to: ``self.scaler``."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.imports = Imports(tree)
        self.creations = list(self._creations())
        self.scalers = frozenset(target for target, _ in self.creations)

    def _creations(self) -> Iterator[tuple[str, ast.Assign]]:
        for node in self.tree.nodes(ast.Assign):
            value, target = node.value, path(node.targets[0])
            if isinstance(value, ast.Call) and target and self._is(value.func, _SCALER):
                yield target, node

    def _is(self, node: ast.expr, pattern: re.Pattern[str]) -> bool:
        return bool(pattern.fullmatch(self.imports.qualified(node) or ""))

    def scopes(self) -> Iterator[Scope]:
        """Yield the module and its functions."""
        yield from self.tree.nodes(ast.Module)
        yield from self.tree.nodes(ast.FunctionDef)
        yield from self.tree.nodes(ast.AsyncFunctionDef)

    def calls(self, scope: ast.AST, method: str) -> list[ast.Call]:
        """Return the calls of a method of GradScalers in a scope, in source order."""
        return [c for c in self.attribute_calls(scope, method) if self.scaler_of(c) in self.scalers]

    def attribute_calls(self, scope: ast.AST, method: str) -> list[ast.Call]:
        """Return the calls ``x.method(...)`` in a scope without the functions in it, in source order."""
        found = [
            node
            for node in walk(scope)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == method
        ]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    def scaler_of(self, call: ast.Call) -> str | None:
        """Return the path whose method a call is."""
        return path(call.func.value) if isinstance(call.func, ast.Attribute) else None

    def clips(self, scope: ast.AST) -> list[ast.Call]:
        """Return the calls in a scope that clip gradients."""
        return [n for n in walk(scope) if isinstance(n, ast.Call) and self._is(n.func, _CLIPS)]

    def is_scaled(self, backward: ast.Call) -> bool:
        """Tell whether a backward is that of ``scaler.scale(loss)``."""
        func = backward.func
        loss = func.value if isinstance(func, ast.Attribute) else None
        inner = loss.func if isinstance(loss, ast.Call) else None
        return isinstance(inner, ast.Attribute) and inner.attr == "scale"

    def is_autocast(self, item: ast.withitem) -> bool:
        """Tell whether a context manager is an autocast that may be on."""
        call = item.context_expr
        if not isinstance(call, ast.Call) or not self._is(call.func, _AUTOCAST):
            return False
        return not any(
            k.arg == "enabled" and isinstance(k.value, ast.Constant) and k.value.value is False
            for k in call.keywords
        )

    def escapes(self, scaler: str) -> bool:
        """Tell whether a GradScaler is used otherwise than by calls of its methods, by its name."""
        nodes: list[ast.Name | ast.Attribute] = [
            *self.tree.nodes(ast.Name),
            *self.tree.nodes(ast.Attribute),
        ]
        return any(
            path(node) == scaler
            and isinstance(node.ctx, ast.Load)
            and not isinstance(self.tree.parent(node), ast.Attribute)
            for node in nodes
        )

    def precedes(self, one: ast.AST, other: ast.AST) -> bool:
        """Tell whether control passes `one`, or the block that may run it, on its way to `other`."""
        return self.meeting(one, other) is not None

    def meeting(self, one: ast.AST, other: ast.AST) -> tuple[ast.stmt, ast.stmt] | None:
        """Return the two statements of one block that hold `one` and, later, `other`."""
        tree = self.tree
        chain: dict[int, ast.stmt] = {}
        stmt: ast.AST | None = tree.statement(one)
        while stmt is not None:
            if isinstance(stmt, ast.stmt):
                chain.setdefault(id(tree.block(stmt)), stmt)
            stmt = tree.parent(stmt)
        stmt = tree.statement(other)
        while stmt is not None:
            if isinstance(stmt, ast.stmt) and id(tree.block(stmt)) in chain:
                first = chain[id(tree.block(stmt))]
                block = tree.block(stmt)
                return (first, stmt) if block.index(first) < block.index(stmt) else None
            stmt = tree.parent(stmt)
        return None
