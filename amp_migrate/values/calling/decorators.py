"""Functions and classes that flow into their decorators, which may keep them: ``@register("eval")``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from amp_migrate.facts.imports import last_name
from amp_migrate.modules.model import Class, Function, Module
from amp_migrate.values.calling.targets import Targets
from amp_migrate.values.expressions import Expressions
from amp_migrate.values.nodes import Nodes
from amp_migrate.values.objects import Written

_PLAIN = frozenset({"classmethod", "contextmanager", "dataclass", "property", "staticmethod"})


class Decorators:
    """Links what is decorated by code of the project with the first parameter of the decorator."""

    def __init__(self, nodes: Nodes, expressions: Expressions, targets: Targets) -> None:
        self._nodes = nodes
        self._expressions = expressions
        self._targets = targets
        self._linked: set[tuple[ast.expr, object]] = set()
        self.given: dict[tuple[Function, str], list[tuple[Module, ast.expr, int]]] = {}
        """What the first parameter of each decorator gets, with the decorator as it is written."""

    def link(self, modules: Sequence[Module], called: Iterable[Function]) -> None:
        """Let what is decorated flow on. What is `called` by its name stands for what a wrapper gives back."""
        named = set(called)
        for module in modules:
            for function in module.functions.values():
                if isinstance(function.node, ast.FunctionDef) and function.cls is None:
                    self._link(function, function.node, function in named)
            for cls in module.classes.values():
                self._link(cls, cls.node, True)

    def _link(
        self, thing: Function | Class, defined: ast.FunctionDef | ast.ClassDef, named: bool
    ) -> None:
        module = thing.module
        for decorator in defined.decorator_list:
            if last_name(decorator) in _PLAIN:
                continue
            for taker in self._targets.of(module, decorator):
                function = taker.function
                if function is None or (named and _wraps(function)):
                    continue
                places = function.parameters.positional[taker.bound + (taker.taken or 0) :]
                if places and (decorator, function) not in self._linked:
                    self._linked.add((decorator, function))
                    node = self._flow(thing, self._nodes.parameter(function, places[0]))
                    given = self.given.setdefault((function, places[0]), [])
                    given.append((module, decorator, node))
            made = self._expressions.node(module, decorator)
            for fact in list(self._nodes.graph.facts(made)) if made is not None else ():
                if isinstance(fact, Written) and (decorator, fact.node) not in self._linked:
                    self._linked.add((decorator, fact.node))
                    for name in fact.node.args.args[:1]:
                        parameter = self._nodes.variable(fact.module, fact.node, name.arg)
                        self._flow(thing, parameter)

    def _flow(self, thing: Function | Class, parameter: int) -> int:
        node = self._nodes.graph.new()
        self._nodes.graph.state(node, thing)
        self._nodes.graph.flow(node, parameter)
        return node


def _wraps(function: Function) -> bool:
    """Tell whether a decorator gives a wrapper that passes on whatever it gets."""
    inner = [f for f in function.module.functions.values() if f.parent is function]
    return any(f.parameters.vararg and f.parameters.kwarg for f in inner)
