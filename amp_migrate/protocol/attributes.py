"""Attributes that hold a GradScaler, and that a constructor may leave unset."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import last_names
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.project import Class, Function, Module
from amp_migrate.protocol.code.course import names_in
from amp_migrate.protocol.code.program import Program

_MAKING = ("__init__", "__post_init__")


def unset_attributes(program: Program) -> Iterator[tuple[Module, ast.Attribute]]:
    """Yield the first read of every attribute for a GradScaler that some path of its constructor does not set.

    What the constructor calls may set it, too.
    """
    for module in program.project.modules.values():
        for cls in module.classes.values():
            making = _making(program, cls)
            stores: dict[str, list[Point]] = {}
            for method in making:
                for attr, point in _stores(program, method):
                    stores.setdefault(attr, []).append(point)
            for attr, mine in stores.items():
                if _set_elsewhere(program, cls, attr, making) or _is_set(program, cls, attr):
                    continue
                tests = {name for p in mine for name in tests_above(module, p.node)}
                found = _read(cls, attr, tests)
                if found is not None:
                    yield module, found


def _constructors(cls: Class) -> list[Function]:
    """Return what runs whenever an object of a class is made, a dataclass's second half included."""
    return [cls.methods[name] for name in _MAKING if name in cls.methods]


def _making(program: Program, cls: Class) -> list[Function]:
    """Return the constructors of a class, and the methods of it that these call."""

    def called(function: Function) -> list[Function]:
        calls = function.calls
        return [f for call in calls for f in program.project.callees(call) if f.cls is cls]

    return list(closure(_constructors(cls), called))


def _stores(program: Program, method: Function) -> Iterator[tuple[str, Point]]:
    """Yield where a method sets an attribute of its object to a GradScaler."""
    objects = program.training.objects
    for point in program.graph(method).points:
        if (
            point.kind is Kind.STORE
            and isinstance(point.node, ast.Attribute)
            and method.is_receiver(point.node.value)
            and objects.scaler(method.module, point.node) is not None
        ):
            yield point.node.attr, point


def _is_set(program: Program, cls: Class, attr: str) -> bool:
    """Tell whether a constructor sets an attribute on each of its paths."""
    return any(_sets(program, init, attr, frozenset()) for init in _constructors(cls))


def _sets(program: Program, method: Function, attr: str, above: frozenset[Function]) -> bool:
    """Tell whether a method sets an attribute on each of its paths, or runs one that does."""
    if method in above:
        return False
    above |= {method}
    graph = program.graph(method)
    points = [point for name, point in _stores(program, method) if name == attr]
    for point in graph.points:
        callees = program.project.callees(point.node) if isinstance(point.node, ast.Call) else []
        if callees and all(f.cls is method.cls and _sets(program, f, attr, above) for f in callees):
            points.append(point)
    return graph.order(exceptions=False).must_pass(graph.entry, graph.exit, points)


def tests_above(module: Module, node: ast.AST) -> set[str]:
    """Return what the tests ask for under which a node stands in its function, by its last names."""
    found: set[str] = set()
    for up in module.tree.ancestors(node):
        if isinstance(up, ast.If | ast.IfExp | ast.While):
            found |= last_names(up.test)
        elif isinstance(up, ast.BoolOp):
            found |= last_names(up)
        elif isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            break
    return found


def _set_elsewhere(program: Program, cls: Class, attr: str, making: Collection[Function]) -> bool:
    """Tell whether anything but its constructor and what that calls may give objects of a class an attribute."""
    family = {*cls.mro(), *cls.subclasses()}
    if any(attr in c.methods for c in family):
        return True
    for one in family:
        for statement in one.node.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and attr in names_in(statement):
                return True
    for module, node in program.project.nodes(ast.Attribute):
        if node.attr == attr and isinstance(node.ctx, ast.Store):
            function = program.project.function_of(module, node)
            others = function.cls is not None and function.cls not in family
            if others and function.is_receiver(node.value):
                continue
            if function not in making:
                return True
    return False


def _read(cls: Class, attr: str, tests: set[str]) -> ast.Attribute | None:
    """Return a read of an attribute by a method that no test shields which the constructor asks as well."""
    module = cls.module
    found = [
        node
        for method in cls.methods.values()
        for node in (ast.walk(method.node) if method.node is not None else ())
        if isinstance(node, ast.Attribute) and node.attr == attr and isinstance(node.ctx, ast.Load)
        if method.is_receiver(node.value)
        if not tests & tests_above(module, node)
    ]
    return min(found, key=lambda node: (node.lineno, node.col_offset), default=None)
