"""What ``with`` binds: what the ``__enter__`` of a class of the project returns."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from amp_migrate.modules.model import Function, Module
from amp_migrate.values.calling.targets import reachable
from amp_migrate.values.expressions import Expressions
from amp_migrate.values.links.graph import MIDDLE
from amp_migrate.values.links.upstream import EACH
from amp_migrate.values.nodes import Nodes
from amp_migrate.values.objects import Instance


class Entered:
    """Links the variables of ``with`` statements with what entering gives, as far as objects are known."""

    def __init__(self, nodes: Nodes, expressions: Expressions) -> None:
        self._nodes = nodes
        self._graph = nodes.graph
        self._expressions = expressions
        self._linked: set[tuple[ast.withitem, Function]] = set()

    def link(self, modules: Sequence[Module]) -> None:
        """Let what ``__enter__`` returns flow into the variables that are bound to it."""
        for module in modules:
            for item in module.tree.nodes(ast.withitem):
                if item.optional_vars is not None and isinstance(item.context_expr, ast.Call):
                    self._item(module, item)

    def _item(self, module: Module, item: ast.withitem) -> None:
        made = self._expressions.node(module, item.context_expr)
        for fact in list(self._graph.facts(made, MIDDLE)) if made is not None else ():
            for method in (
                reachable(self._nodes.lookup, fact, "__enter__")
                if isinstance(fact, Instance)
                else ()
            ):
                if made is not None and (item, method) not in self._linked:
                    self._linked.add((item, method))
                    self._graph.flow(self._nodes.returned(method), self._graph.field(made, EACH))
