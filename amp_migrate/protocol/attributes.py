"""Attributes that hold a GradScaler, and that a constructor may leave unset."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.flow.cfg.points import Kind
from amp_migrate.project import Class, Module
from amp_migrate.protocol.code.course import names_in
from amp_migrate.protocol.code.program import Program


def unset_attributes(program: Program) -> Iterator[tuple[Module, ast.Attribute]]:
    """Yield the first read of every attribute for a GradScaler that some path of its constructor does not set."""
    objects = program.training.objects
    for module in program.project.modules.values():
        for cls in module.classes.values():
            init = cls.methods.get("__init__")
            if init is None:
                continue
            graph = program.graph(init)
            stores = [
                point
                for point in graph.points
                if point.kind is Kind.STORE
                and isinstance(point.node, ast.Attribute)
                and _of_self(point.node, init.parameters.positional[:1])
                and objects.scaler(module, point.node) is not None
            ]
            for attr in dict.fromkeys(
                p.node.attr for p in stores if isinstance(p.node, ast.Attribute)
            ):
                mine = [
                    p for p in stores if isinstance(p.node, ast.Attribute) and p.node.attr == attr
                ]
                if _set_elsewhere(program, cls, attr):
                    continue
                if graph.order(exceptions=False).must_pass(graph.entry, graph.exit, mine):
                    continue
                tests = {name for p in mine for name in tests_above(module, p.node)}
                found = _read(cls, attr, tests)
                if found is not None:
                    yield module, found


def tests_above(module: Module, node: ast.AST) -> set[str]:
    """Return the names and attributes in the tests under which a node stands in its function."""
    found: set[str] = set()
    for up in module.tree.ancestors(node):
        if isinstance(up, ast.If | ast.IfExp | ast.While):
            found |= names_in(up.test)
        elif isinstance(up, ast.BoolOp):
            found |= names_in(up)
        elif isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            break
    return found - {"self", "args"}


def _of_self(node: ast.Attribute, receiver: tuple[str, ...]) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in receiver


def _set_elsewhere(program: Program, cls: Class, attr: str) -> bool:
    """Tell whether anything but its constructor may give objects of a class an attribute."""
    family = {*cls.mro(), *cls.subclasses()}
    if any(attr in c.methods for c in family):
        return True
    for one in family:
        for statement in one.node.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and attr in names_in(statement):
                return True
    init = cls.methods["__init__"].node
    for module in program.project.modules.values():
        for node in module.tree.nodes(ast.Attribute):
            if node.attr == attr and isinstance(node.ctx, ast.Store):
                if module.tree.function(node) is not init:
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
        if _of_self(node, method.parameters.positional[:1])
        if not tests & tests_above(module, node)
    ]
    return min(found, key=lambda node: (node.lineno, node.col_offset), default=None)
