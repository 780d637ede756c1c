"""Arguments that flow into lambdas, and what these give back."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.modules.model import Function, Module
from amp_migrate.values.expressions import Expressions
from amp_migrate.values.links.graph import MIDDLE
from amp_migrate.values.links.upstream import EACH
from amp_migrate.values.nodes import Nodes
from amp_migrate.values.objects import Bound, Fact, Written

_MAPS = frozenset({"filter", "map"})


class Lambdas:
    """Links the calls of a lambda with its parameters and its value."""

    def __init__(self, nodes: Nodes, expressions: Expressions) -> None:
        self.nodes = nodes
        self.graph = nodes.graph
        self.expressions = expressions
        self.run: dict[tuple[ast.Call, ast.Lambda], Module] = {}

    def link(self, module: Module, call: ast.Call) -> None:
        """Let the arguments of a call flow into the lambdas that it may run, and their values into its result."""
        callee = self.expressions.node(module, call.func)
        for fact in list(self.graph.facts(callee, MIDDLE)) if callee is not None else ():
            if isinstance(fact, Written) and (call, fact.node) not in self.run:
                self.run[call, fact.node] = module
                self._pass(module, call, fact)

    def map(self, maps: Iterable[tuple[Module, ast.Call]]) -> None:
        """Let each item of what ``map(f, items)`` or ``filter(f, items)`` goes through flow into the function that it runs."""
        for module, call in maps:
            self._each(module, call)

    def _each(self, module: Module, call: ast.Call) -> None:
        run = self.expressions.node(module, call.args[0])
        items = [self.expressions.node(module, item) for item in call.args[1:]]
        for fact in list(self.graph.facts(run, MIDDLE)) if run is not None else ():
            for item, parameter in zip(items, self._parameters(fact), strict=False):
                if item is not None:
                    self.graph.flow(self.graph.field(item, EACH), parameter)

    def _parameters(self, fact: Fact) -> list[int]:
        """Return the nodes of the parameters that a function has left."""
        if isinstance(fact, Written):
            named = [*fact.node.args.posonlyargs, *fact.node.args.args]
            return [self.nodes.variable(fact.module, fact.node, a.arg) for a in named]
        bound = isinstance(fact, Bound)
        function = fact.function if isinstance(fact, Bound) else fact
        if not isinstance(function, Function):
            return []
        return [self.nodes.parameter(function, n) for n in function.parameters.positional[bound:]]

    def _pass(self, module: Module, call: ast.Call, run: Written) -> None:
        for name, value in given(run.node, call):
            node = self.expressions.node(module, value)
            if node is not None:
                self.graph.flow(node, self.nodes.variable(run.module, run.node, name))
        held = self.expressions.node(run.module, run.node.body)
        result = self.expressions.node(module, call)
        if held is not None and result is not None:
            self.graph.flow(held, result)


def given(run: ast.Lambda, call: ast.Call) -> list[tuple[str, ast.expr]]:
    """Return the parameters of a lambda with what a call gives each; what is unpacked is left out."""
    parameters = run.args
    places = [*parameters.posonlyargs, *parameters.args]
    named = {a.arg for a in (*parameters.args, *parameters.kwonlyargs)}
    found = [(a.arg, value) for a, value in zip(places, call.args, strict=False)]
    found += [(k.arg, k.value) for k in call.keywords if k.arg in named]
    return [(name, value) for name, value in found if not isinstance(value, ast.Starred)]


def maps_of(module: Module) -> Iterator[tuple[Module, ast.Call]]:
    """Yield the calls ``map(f, items)`` and ``filter(f, items)`` of a file."""
    for call in module.tree.nodes(ast.Call):
        if len(call.args) > 1 and module.scopes.builtin(call.func) in _MAPS:
            yield module, call
