"""Apex and optimizers, as they are handed to objects: in calls of module objects, and in attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.constants import string
from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import all_given
from amp_migrate.modules.model import Module
from amp_migrate.values.calling.passing import Passing
from amp_migrate.values.calling.targets import Target
from amp_migrate.values.expressions import NAMESPACES, Expressions
from amp_migrate.values.forms import named_fields
from amp_migrate.values.links.graph import MIDDLE
from amp_migrate.values.links.onward import onward
from amp_migrate.values.nodes import Nodes
from amp_migrate.values.objects import Fact, Instance, Made

Store = tuple[Module, ast.Attribute, ast.expr]


class Tools:
    """Tells where Apex and optimizers are given, as far as the arguments that were passed so far show."""

    def __init__(self, nodes: Nodes, expressions: Expressions, passing: Passing) -> None:
        self.nodes = nodes
        self.graph = nodes.graph
        self.expressions = expressions
        self._passed = passing.passed

    def takes_apex(self, target: Target, within: bool = True) -> bool:
        """Tell whether Apex must be given to a ``forward``, or `within` a dictionary: then only the project can call it."""
        function = target.function
        return function is not None and any(
            "apex.amp" in self.graph.facts(item, MIDDLE)
            for name in function.parameters.required()
            for _, node in self._passed.get((function, name), [])
            for item in [
                self.nodes.parameter(function, name),
                *(self._values(node) if within else ()),
            ]
        )

    def _values(self, node: int) -> list[int]:
        """Return the nodes of the values of a dictionary that is written out."""
        return [self.graph.field(node, name) for name in self.graph.items(node)]

    def holds_tool(self, node: int) -> bool:
        """Tell whether an object is Apex, another library or an optimizer, or a dictionary that holds Apex."""
        within = (self.graph.facts(item, MIDDLE) for item in self._values(node))
        return self._is_tool(node) or any("apex.amp" in facts for facts in within)

    def _is_tool(self, node: int) -> bool:
        """Tell whether an object is Apex or another library, or an optimizer."""
        return any(
            isinstance(fact, str) or (isinstance(fact, Made) and fact.is_optimizer)
            for fact in self.graph.facts(node, MIDDLE)
        )

    def holds_apex(self, module: Module, call: ast.Call) -> bool:
        """Tell whether an argument may be Apex, or a collection that holds it."""
        given = all_given(call)
        values = [item.value if isinstance(item, ast.Starred) else item for item in given]
        nodes = [n for item in values if (n := self.expressions.node(module, item)) is not None]
        roots = {root for node in nodes for root in self.graph.reach(node)[0]}
        return any("apex.amp" in self.graph.own_facts(root) for root in roots)

    def store(self, stores: list[tuple[Module, ast.Attribute, ast.expr]]) -> None:
        """Let Apex reach the attributes in which it is stored, on objects of any of several classes."""
        for module, _, value in stores:
            self.expressions.node(module, value)
        near = onward(self.graph, self.graph.holding(_is_amp), self.expressions.node)
        for module, target, value in stores:
            if near.reaches(module, value):
                self._store(module, target, value)

    def _store(self, module: Module, target: ast.Attribute, value: ast.expr) -> None:
        node = self.expressions.node(module, value)
        base = self.expressions.node(module, target.value)
        if node is None or base is None or "apex.amp" not in self.graph.facts(node, MIDDLE):
            return
        for fact in self.graph.facts(base, MIDDLE):
            if isinstance(fact, Instance):
                self.graph.flow(node, self.nodes.attribute(fact.cls, target.attr))


def _is_amp(fact: Fact) -> bool:
    return fact == "apex.amp"


def stores_of(module: Module) -> Iterator[Store]:
    """Yield the attributes of objects to which a name or attribute is assigned."""
    for node in module.tree.nodes(ast.Assign):
        if isinstance(node.value, ast.Name | ast.Attribute):
            for target in node.targets:
                if isinstance(target, ast.Attribute):
                    yield module, target, node.value


def kept_names(module: Module) -> Iterator[str]:
    """Yield the names under which objects keep what may be called: assigned, set, declared as fields, given to a namespace."""
    for node in module.tree.nodes(ast.Attribute):
        if isinstance(node.ctx, ast.Store):
            yield node.attr
    for cls in module.classes.values():
        yield from cls.fields()
    for call in module.tree.nodes(ast.Call):
        if last_name(call) == "setattr" and len(call.args) == 3:
            yield string(call.args[1]) or ""
        elif last_name(call) == "namedtuple":
            yield from named_fields(call)
        elif last_name(call) in NAMESPACES:
            yield from (keyword.arg for keyword in call.keywords if keyword.arg)
