"""Objects that a library makes of a network and keeps it in: calling one may run the network."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Protocol

from amp_migrate.facts.paths import all_given, path
from amp_migrate.project import Module, Project

_CALLS = frozenset({"__call__", "forward"})


class Holding(Protocol):
    """Gives the groups of the names that hold what an expression does."""

    def groups(self, module: Module, expression: ast.expr) -> frozenset[int]:
        """Return the groups of all objects that an expression may hold."""


def holders(
    project: Project,
    modules: Iterable[Module],
    values: Holding,
    networks: set[int],
    *,
    alone: bool = False,
) -> set[int]:
    """Return the groups of what code out of sight makes of one of some networks; if `alone`, of it and constants only.

    The second may be the network itself, without what is around it.
    """
    return {
        group
        for module in modules
        for call in module.tree.nodes(ast.Call)
        if not project.callees(call) and not project.constructed(call)
        if any(values.groups(module, node) & networks for node in _given(call))
        if project.external(module, call.func) is not None and (not alone or _is_alone(call))
        for group in values.groups(module, call)
    } - networks


def _is_alone(call: ast.Call) -> bool:
    return sum(not isinstance(node, ast.Constant) for node in all_given(call)) == 1


def _given(call: ast.Call) -> Iterator[ast.expr]:
    for node in all_given(call):
        inner = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
        yield from (part for part in inner if path(part) is not None)


def called(call: ast.Call) -> ast.expr:
    """Return the object that a call is of, by itself or by its ``forward``."""
    func = call.func
    return func.value if isinstance(func, ast.Attribute) and func.attr in _CALLS else func
