"""What calls give: what the function returns, a new object of a class, or what the receiver holds of that."""

from __future__ import annotations

import ast

from amp_migrate.modules.model import CallSite, Class, Function, Module
from amp_migrate.values.apart.contents import Contents
from amp_migrate.values.calling.passing import Passing
from amp_migrate.values.calling.receivers import Inner, Receivers
from amp_migrate.values.calling.targets import Target, constructor
from amp_migrate.values.expressions import Expressions
from amp_migrate.values.links.graph import MIDDLE
from amp_migrate.values.links.upstream import APPENDED, EACH
from amp_migrate.values.nodes import Nodes, function_of
from amp_migrate.values.objects import Bound, Fact, Held, Instance, Made, Method, Partial, Written
from amp_migrate.values.wrappers import wrapped_argument, wraps

_LISTS = frozenset(
    {"UserList", "collections.UserList", "collections.deque", "list", "set", "tuple"}
)

_UNTOLD = (Held, Instance, Method, Written)


class Results:
    """Links the results of calls with what functions return and with what classes make."""

    def __init__(
        self, nodes: Nodes, expressions: Expressions, passing: Passing, contents: Contents
    ) -> None:
        self.given: dict[Function, list[tuple[CallSite, int]]] = {}
        self._nodes = nodes
        self._graph = nodes.graph
        self._expressions = expressions
        self._passing = passing
        self._receivers = Receivers(nodes, contents)
        self._linked: set[tuple[ast.Call, Function]] = set()
        self.own = self._receivers.own
        self._left: set[Inner] = set()

    def give(self, module: Module, call: ast.Call, target: Target, result: int) -> None:
        """Let a call give what the function returns, or what its receiver holds of that."""
        function, receiver = target.function, target.receiver
        assert function is not None
        if receiver is not None and self._receivers.link(function, receiver, call, result):
            return
        if (call, function) in self._linked:
            return
        self._linked.add((call, function))
        site = CallSite(function_of(module, call), call, target.bound)
        self.given.setdefault(function, []).append((site, result))
        self._graph.make(self._nodes.returned(function), result)
        if isinstance(receiver, Class) and _makes_own(function):
            self._graph.state(result, Instance(receiver, exact=True))

    def construct(self, module: Module, call: ast.Call, cls: Class, result: int | None) -> None:
        """Let a call give a new object of a class."""
        if result is None:
            return
        self._graph.state(result, Instance(cls, exact=True))
        inner = wrapped_argument(call) if wraps(cls.externals()) else None
        node = self._expressions.node(module, inner) if inner is not None else None
        if node is not None:
            self._graph.flow(node, result)
        if cls.method("__init__") is None:
            self._passing.fields(module, call, cls)
            if _LISTS & set(cls.externals()) and call.args:
                items = self._expressions.node(module, call.args[0])
                if items is not None:
                    held = self._graph.field(result, APPENDED)
                    self._graph.flow(self._graph.field(items, EACH), held)

    def outside(self, module: Module, call: ast.Call) -> None:
        """Let a call of what a variable or collection holds give what something outside the project makes."""
        callee = self._expressions.node(module, call.func)
        result = self._expressions.node(module, call)
        if callee is not None and result is not None:
            for fact in list(self._graph.facts(callee, MIDDLE)):
                if isinstance(fact, str):
                    self._graph.state(result, Made(fact))

    def resolve(self, reached: dict[ast.Call, list[Target]]) -> None:
        """Let calls reach and give what calling an item of their receivers does, as far as it is known by now."""
        for inner, fact in self._receivers.new():
            self._make(inner, fact)
            targets = reached.setdefault(inner.outer, [])
            if isinstance(fact, _UNTOLD):
                self._leave(inner, targets)
            if self._receivers.is_plain(inner.function) and inner not in self._left:
                targets[:] = [target for target in targets if target.function is not inner.function]
            run = _run(fact)
            if run is not None and run not in targets:
                targets.append(run)

    def _leave(self, inner: Inner, targets: list[Target]) -> None:
        """Let a call give and reach what it does whatever its receiver is, where an item says by itself what a call of it runs."""
        self._left.add(inner)
        made = self._expressions.node(inner.function.module, inner.call)
        if made is not None:
            self._graph.make(made, inner.result)
        if all(target.function is not inner.function for target in targets):
            targets.append(Target(inner.function, bound=True))

    def _make(self, inner: Inner, fact: Fact) -> None:
        run = _run(fact)
        if isinstance(fact, Class):
            self.construct(inner.function.module, inner.call, fact, inner.result)
        elif isinstance(fact, str):
            self._graph.state(inner.result, Made(fact))
        elif run is not None and run.function is not None:
            self._graph.make(self._nodes.returned(run.function), inner.result)


def _makes_own(function: Function) -> bool:
    """Tell whether a method of a class gives an object of the class that it is called on: ``model = cls(config)``."""
    if not function.is_class:
        return False
    made = {
        target.id
        for stmt in function.own_nodes
        if isinstance(stmt, ast.Assign) and _calls_receiver(function, stmt.value)
        for target in stmt.targets
        if isinstance(target, ast.Name)
    }
    return any(
        _calls_receiver(function, stmt.value)
        or (isinstance(stmt.value, ast.Name) and stmt.value.id in made)
        for stmt in function.own_nodes
        if isinstance(stmt, ast.Return)
    )


def _calls_receiver(function: Function, node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and function.is_receiver(node.func)


def _run(fact: Fact) -> Target | None:
    """Return what calling an object runs; None where that is not of the project."""
    if isinstance(fact, Class):
        return constructor(fact)
    if isinstance(fact, Bound | Partial):
        return Target(fact.function)
    return Target(fact) if isinstance(fact, Function) else None
