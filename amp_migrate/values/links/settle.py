"""Merges parameters with their arguments, and results with what is returned, where that is exact."""

from __future__ import annotations

from amp_migrate.modules.model import CallSite, Function
from amp_migrate.values.calling.calls import Calls
from amp_migrate.values.nodes import Nodes

_PASSES = 2


def settle(nodes: Nodes, calls: Calls) -> None:
    """Merge each parameter that gets one object only, and each call result that is one object only.

    A parameter that gets different objects, and the result of a function that makes a new object at
    every call, keep their links: each may be any of its sources, which stay apart.
    """
    settler = _Settler(nodes, calls)
    for _ in range(_PASSES):
        for (function, name), given in calls.passed.items():
            settler.parameter(function, name, [node for _, node in given])
        for function, results in calls.results.items():
            settler.results(function, results)


class _Settler:
    def __init__(self, nodes: Nodes, calls: Calls) -> None:
        self.nodes = nodes
        self.graph = nodes.graph
        self.calls = calls

    def parameter(self, function: Function, name: str, given: list[int]) -> None:
        """Merge a parameter with its arguments if they are all the same object."""
        if len({self.graph.find(node) for node in given}) == 1:
            self.graph.merge(given[0], self.nodes.parameter(function, name))

    def results(self, function: Function, results: list[tuple[CallSite, int]]) -> None:
        """Merge the results of the calls of `function` with what it returns, position by position."""
        returned = self.nodes.returned(function)
        if len(results) == 1:
            self.graph.merge(returned, results[0][1])
            return
        self._result(function, returned, [(site, node) for site, node in results])
        for name in self.graph.items(returned):
            inner = self.graph.field(returned, name)
            fields = [(site, self.graph.field(node, name)) for site, node in results]
            self._result(function, inner, fields)

    def _result(
        self, function: Function, returned: int, results: list[tuple[CallSite, int]]
    ) -> None:
        near = self.graph.near(returned)
        names = [
            name
            for name in function.parameters.names
            if self.graph.find(self.nodes.parameter(function, name)) in near
        ]
        if len(names) == 1:
            given = dict(self.calls.passed.get((function, names[0]), ()))
            for site, node in results:
                if site in given:
                    self.graph.merge(node, given[site])
        elif any(self.graph.lasts(root) for root in near):
            for _, node in results:
                self.graph.flow(returned, node)
