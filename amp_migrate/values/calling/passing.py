"""Arguments that flow into parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.modules.binding import bind
from amp_migrate.modules.model import CallSite, Class, Function, Module
from amp_migrate.values.calling.targets import Target
from amp_migrate.values.expressions import Expressions
from amp_migrate.values.nodes import Nodes

LAUNCHERS = {"spawn", "start_processes", "Thread", "Process"}


class Passing:
    """Links arguments with parameters, and keeps which node each call gave to each parameter."""

    def __init__(self, nodes: Nodes, expressions: Expressions) -> None:
        self.nodes = nodes
        self.graph = nodes.graph
        self.expressions = expressions
        self.passed: dict[tuple[Function, str], list[tuple[CallSite, int]]] = {}

    def arguments(self, module: Module, site: CallSite, goal: Target) -> None:
        """Let the arguments of a call flow into the parameters of what it reaches."""
        target = goal.function
        assert target is not None
        passed = bind(site, target, goal.taken)
        for name, argument in passed.given.items():
            self._pass(site, target, name, self.expressions.node(module, argument))
        parameters = target.parameters
        if parameters.vararg is not None:
            rest = self.nodes.parameter(target, parameters.vararg)
            for index, argument in enumerate(passed.extra):
                self._flow(module, argument, self.graph.field(rest, f"[{index}]"))
        if parameters.kwarg is not None:
            rest = self.nodes.parameter(target, parameters.kwarg)
            for keyword, argument in passed.keywords.items():
                self._flow(module, argument, self.graph.field(rest, f"[{keyword!r}]"))
        self._starred(module, site, target)

    def _starred(self, module: Module, site: CallSite, target: Function) -> None:
        passed = bind(site, target)
        parameters = target.parameters
        star = self.expressions.node(module, passed.star) if passed.star is not None else None
        if star is not None:
            start = passed.star_at + site.bound
            for index, name in enumerate(parameters.positional[start:]):
                self._pass(site, target, name, self.graph.field(star, f"[{index}]"))
            if parameters.vararg is not None and len(parameters.positional) <= start:
                self.graph.flow(star, self.nodes.parameter(target, parameters.vararg))
        for value in passed.double_stars:
            node = self.expressions.node(module, value)
            if node is None:
                continue
            for name in parameters.names[site.bound :]:
                if name not in passed.given:
                    self._pass(site, target, name, self.graph.field(node, f"[{name!r}]"))
            if parameters.kwarg is not None:
                self.graph.flow(node, self.nodes.parameter(target, parameters.kwarg))

    def _pass(self, site: CallSite, target: Function, name: str, node: int | None) -> None:
        if node is not None:
            self.passed.setdefault((target, name), []).append((site, node))
            self.graph.flow(node, self.nodes.parameter(target, name))

    def _flow(self, module: Module, argument: ast.expr, target: int) -> None:
        node = self.expressions.node(module, argument)
        if node is not None:
            self.graph.flow(node, target)

    def fields(self, module: Module, call: ast.Call, cls: Class) -> None:
        """Let the arguments of a dataclass or named tuple be its attributes."""
        names = [
            item.target.id
            for base in reversed(cls.mro())
            for item in base.node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        ]
        given = dict(zip(names, call.args, strict=False))
        given |= {item.arg: item.value for item in call.keywords if item.arg in names}
        for name, argument in given.items():
            node = self.expressions.node(module, argument)
            if node is not None:
                self.graph.flow(node, self.nodes.attribute(cls, name))

    def launch(self, module: Module, call: ast.Call, targets: Iterable[Target]) -> None:
        """Let what a call hands to a process or thread flow into the functions that this runs."""
        named = {item.arg: item.value for item in call.keywords if item.arg}
        arguments = named.get("args") or next(iter(call.args[1:]), None)
        if not isinstance(arguments, (ast.Tuple, ast.List)):
            return
        # spawn() gives the process its index before the arguments.
        first = 0 if "target" in named else 1
        for target in targets:
            if target.function is None:
                continue
            names = target.function.parameters.positional[first + target.bound :]
            for name, argument in zip(names, arguments.elts, strict=False):
                node = self.expressions.node(module, argument)
                if node is not None:
                    self.graph.merge(node, self.nodes.parameter(target.function, name))


def launched(call: ast.Call) -> ast.expr | None:
    """Return what a call that starts a process or thread runs there."""
    named = {item.arg: item.value for item in call.keywords if item.arg}
    return named.get("target") or named.get("fn") or next(iter(call.args), None)
