"""Which exceptions a training survives: where one may be caught, and which handler takes it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import cached_property

from amp_migrate.flow.assumption import Assumption, Known
from amp_migrate.flow.cfg.points import Edge, EdgeKind, Kind, Point
from amp_migrate.flow.terms import Term
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.reach import reachable
from amp_migrate.training.contexts import stops_exceptions

RAISED = Term("raised()", frozenset())
"""The exception that is on its way, as a fact."""
UNKNOWN = Known("?")
"""Something that code out of sight raises."""

_ONLY_STATED = frozenset(
    {"AssertionError", "GeneratorExit", "ImportError", "KeyboardInterrupt"}
    | {"ModuleNotFoundError", "StopAsyncIteration", "StopIteration", "SystemExit"}
)
"""Exceptions of Python that come from statements and builtins of their own, or from outside of the program."""


class Exceptions:
    """Asks of exceptions by the classes that statements and handlers name."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def swallows(self, context: ast.expr) -> bool:
        """Tell whether leaving a context stops exceptions."""
        return stops_exceptions(self._project, context)

    def survived(self, function: Function, node: ast.AST) -> bool:
        """Tell whether the training may go on after an exception at a node."""
        return function in self._called or self._within(function.module, node)

    def _within(self, module: Module, node: ast.AST) -> bool:
        return any(node in body for body in self._bodies.get(module, ()))

    @cached_property
    def _bodies(self) -> dict[Module, list[frozenset[ast.AST]]]:
        """The nodes out of which exceptions are caught, module by module."""
        found: dict[Module, list[frozenset[ast.AST]]] = {}
        for module in self._project.modules.values():
            for body in self._guarded(module):
                nodes = frozenset(part for statement in body for part in ast.walk(statement))
                found.setdefault(module, []).append(nodes)
        return found

    def _guarded(self, module: Module) -> Iterator[list[ast.stmt]]:
        for guard in module.tree.nodes(ast.Try):
            if guard.handlers:
                yield guard.body
        for block in module.tree.nodes(ast.With):
            if any(self.swallows(item.context_expr) for item in block.items):
                yield block.body

    @cached_property
    def _called(self) -> frozenset[Function]:
        """The functions that run, near or far, where exceptions are caught."""
        queue = [
            callee
            for bodies in self._bodies.values()
            for body in bodies
            for node in body
            if isinstance(node, ast.Call)
            for callee in self._project.callees(node)
        ]
        return frozenset().union(*(reachable(self._project, function) for function in queue))

    def outside(self, call: ast.Call) -> Known:
        """Return what a call of code out of sight may raise."""
        if isinstance(call.func, ast.Name) and call.func.id in ("next", "anext"):
            return Known("StopIteration" if call.func.id == "next" else "StopAsyncIteration")
        return UNKNOWN

    def named(self, module: Module, statement: ast.Raise) -> str:
        """Return the class of what a statement raises by its name; that of something unknown where it may be any."""
        name = None if statement.exc is None else self._name(module, statement.exc)
        return str(UNKNOWN.value) if name is None else name

    def caught(self, module: Module, guard: ast.Try, raised: str) -> bool | None:
        """Tell whether a `try` has a handler for an exception of a name; None where it may."""
        found = {
            handler.type is None or self._fits(module, handler.type, raised)
            for handler in guard.handlers
        }
        return True if True in found else None if None in found else False

    def along(self, function: Function, edge: Edge, known: Assumption) -> Assumption | None:
        """Return what is known behind an edge of the exception that is on its way; None where it goes elsewhere."""
        point = edge.source
        if point.kind is Kind.RAISE and edge.kind is EdgeKind.RAISE:
            return self._stated(function, point, known)
        if point.kind is Kind.CAUGHT and isinstance(point.node, ast.Try):
            return _forgotten(known) if point.node.handlers[0].type is None else known
        if point.kind is not Kind.MATCH or not isinstance(point.node, ast.ExceptHandler):
            return known
        taken = edge.kind is EdgeKind.TRUE
        stated = known.get(RAISED)
        if isinstance(stated, Known) and point.node.type is not None:
            if self._fits(function.module, point.node.type, str(stated.value)) is (not taken):
                return None
        return _forgotten(known) if taken else known

    def _stated(self, function: Function, point: Point, known: Assumption) -> Assumption:
        if isinstance(point.node, ast.Assert):
            return known.with_fact(RAISED, Known("AssertionError"))
        raised = point.node.exc if isinstance(point.node, ast.Raise) else None
        name = None if raised is None else self._name(function.module, raised)
        return _forgotten(known) if name is None else known.with_fact(RAISED, Known(name))

    def _name(self, module: Module, raised: ast.expr) -> str | None:
        """Return the class of an exception by its name; None where it may be any."""
        named = raised.func if isinstance(raised, ast.Call) else raised
        cls = self._class(module, named)
        if cls is not None:
            return f"{cls.module.path}:{cls.qualname}"
        if isinstance(named, ast.Name) and _builtin(named.id) is not None:
            return named.id
        return self._project.external(module, named)

    def _class(self, module: Module, node: ast.expr) -> Class | None:
        meaning = self._project.resolve(module, node)
        return meaning if isinstance(meaning, Class) else None

    def _fits(self, module: Module, wanted: ast.expr, raised: str) -> bool | None:
        """Tell whether a handler takes an exception; None where it may."""
        types = wanted.elts if isinstance(wanted, ast.Tuple) else [wanted]
        found = {self._takes(module, each, raised) for each in types}
        return True if True in found else None if None in found else False

    def _takes(self, module: Module, wanted: ast.expr, raised: str) -> bool | None:
        cls = self._class(module, wanted)
        if cls is not None:
            mine = {f"{c.module.path}:{c.qualname}" for c in (cls, *cls.subclasses())}
            return raised in mine
        name = wanted.id if isinstance(wanted, ast.Name) else None
        caught = _builtin(name)
        if raised == UNKNOWN.value:
            everything = name in ("Exception", "BaseException")
            return True if everything else (False if name in _ONLY_STATED else None)
        thrown = _builtin(raised)
        if thrown is not None and caught is not None:
            return issubclass(thrown, caught)
        if ":" in raised and caught is not None and name is not None:
            return self._derives(raised, name, caught)
        return None if thrown is None else False

    def _derives(self, raised: str, name: str, caught: type[BaseException]) -> bool:
        """Tell whether a class of the project derives from one of Python."""
        path, _, qualname = raised.rpartition(":")
        for cls in self._project.modules[path].classes.values():
            if cls.qualname == qualname:
                bases = [_builtin(base) or Exception for base in cls.externals()] or [Exception]
                return any(issubclass(base, caught) for base in bases)
        return name in ("Exception", "BaseException")


def _builtin(name: str | None) -> type[BaseException] | None:
    found = getattr(builtins, name or "", None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def _forgotten(known: Assumption) -> Assumption:
    return known.without_term(RAISED)
