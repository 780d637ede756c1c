"""The names of the flags that decide something, and of all that those are set to."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.check.apex.assumed import guards
from amp_migrate.check.apex.flags.entries import entry_of, put_under
from amp_migrate.flow.cfg.points import Kind
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.bindings import returned, values_of

_Place = tuple[Function, ast.expr]
_JUMPS = ast.Return | ast.Raise | ast.Break | ast.Continue


def jumped(program: Program, function: Function, node: ast.AST) -> Iterator[_Place]:
    """Yield the tests before a node that may leave its function."""
    graph = program.graph(function)
    leaving = {
        part
        for up in function.own_nodes
        if isinstance(up, ast.If) and any(isinstance(n, _JUMPS) for n in ast.walk(up))
        for part in ast.walk(up.test)
    }
    order, at = graph.order(exceptions=False), graph.at(node)
    for point in graph.points if leaving else ():
        test = point.node
        if point.kind is Kind.TEST and test in leaving and isinstance(test, ast.expr):
            if any(order.may_reach(point, target) for target in at):
                yield function, test


def names_behind(program: Program, function: Function, node: ast.expr) -> frozenset[str]:
    """Return the names of the flags of an expression and of all that those are set to; none where there is more to it.

    An entry goes by its key and by what is put there alone.
    """
    behind = Behind(program)
    found = behind.names([(function, node)])
    return frozenset() if behind.unknown else found


class Behind:
    """Finds the names of flags, and of all that those are set to; `unknown` tells that there is more to it.

    An entry of options goes by its key and by what is put there, whatever holds it.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._project = program.project
        self._objects = program.training.objects
        self.unknown = False

    def names(self, places: Iterable[_Place]) -> frozenset[str]:
        """Return the last parts of the names of the flags of some expressions."""
        found: set[str] = set()
        seen: set[ast.AST] = set()
        queue = list(places)
        while queue:
            function, node = queue.pop()
            if node in seen:
                continue
            seen.add(node)
            entry = entry_of(self._project, function, node)
            if entry is not None:
                found.add(entry)
                queue += put_under(self._project).get(entry, ())
            elif isinstance(node, ast.Name | ast.Attribute):
                found.add(node.id if isinstance(node, ast.Name) else node.attr)
                self.unknown |= self._objects.scaler(function.module, node) is not None
                queue += self._set(function, node)
            else:
                queue += self._within(function, node)
        return frozenset(found)

    def _within(self, function: Function, node: ast.expr) -> Iterator[_Place]:
        """Yield the parts of an expression, and what functions give that it calls."""
        module = function.module
        called = node.func if isinstance(node, ast.Call) else None
        builtin = called is not None and module.scopes.builtin(called) is not None
        for part in ast.iter_child_nodes(node):
            inner = part.value if isinstance(part, ast.keyword) else part
            if isinstance(inner, ast.expr) and not (builtin and inner is called):
                yield function, inner
        if isinstance(node, ast.Call):
            callees = self._project.callees(node)
            known = builtin or self._project.external(module, node.func) is not None
            self.unknown |= not known and not callees
            yield from (place for callee in callees for place in _given(callee))

    def _set(self, function: Function, node: ast.Name | ast.Attribute) -> Iterator[_Place]:
        """Yield what a flag is set to, and the tests around that."""
        module, project = function.module, self._project
        if isinstance(node, ast.Attribute):
            for where, target, value in self._objects.stored.get(node.attr, ()):
                maker = project.function_of(where, target)
                yield from ((maker, value), *((maker, test) for test, _ in guards(maker, target)))
                yield from jumped(self._program, maker, target)
            methods = (f for f in project.functions() if f.is_property and f.name == node.attr)
            yield from (place for method in methods for place in _given(method))
            return
        yield from ((function, value) for value in values_of(module, node))
        for binding in module.scopes.bound(node):
            yield from ((function, test) for test, _ in guards(function, binding))
        if node.id in function.parameters.names:
            for _, giver, given in project.received(function, node.id, itself=True):
                if given is not None:
                    yield giver, given


def _given(function: Function) -> Iterator[_Place]:
    """Yield what a function gives, and the tests around that."""
    for value in returned(function):
        yield from ((function, value), *((function, test) for test, _ in guards(function, value)))
