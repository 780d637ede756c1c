"""What a path remembers of the tests it passed: one test has one truth until something reassigns what it reads."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cached_property

from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.cfg.points import Edge, Kind, Point
from amp_migrate.flow.evaluate import evaluate, refine
from amp_migrate.flow.terms import Aspect, Operand, Term
from amp_migrate.project import Function, Project


class Memory:
    """Refines and forgets what is known along the edges of graphs.

    Only terms that several tests of a function share are remembered. An attribute keeps its value over a call
    unless some function of the project, other than a constructor, stores an attribute of that name.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._shared: dict[Function, frozenset[str]] = {}

    def along(self, function: Function, edge: Edge, known: Assumption) -> Assumption | None:
        """Return what is known at the end of an edge; None where the edge cannot be taken."""
        found: Assumption | None = self._kept(edge.source, known)
        if edge.test is None or found is None:
            return found
        truth = bool(edge.truth)
        if evaluate(edge.test, found) is (not truth):
            return None
        refined = refine(found, edge.test, truth)
        shared = self._terms(function)
        return refined if refined is None else refined.only(lambda term: _shared(term, shared))

    def _terms(self, function: Function) -> frozenset[str]:
        """Return the names and attributes that more than one test of a function reads."""
        if function not in self._shared:
            counts: Counter[str] = Counter()
            for node in ast.walk(function.scope):
                if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
                    counts.update(_read(node.test))
            self._shared[function] = frozenset(text for text, n in counts.items() if n > 1)
        return self._shared[function]

    def _kept(self, point: Point, known: Assumption) -> Assumption:
        if known is NOTHING or not known.facts:
            return known
        node = point.node
        if point.kind in (Kind.STORE, Kind.DELETE, Kind.UNBIND, Kind.IMPORT):
            return known.without(lambda operand: _changes(node, operand))
        if point.kind in (Kind.CALL, Kind.AWAIT, Kind.YIELD):
            return known.without(self._may_change)
        return known

    def _may_change(self, operand: Operand) -> bool:
        if operand.aspect is Aspect.BINDING:
            return False
        if operand.aspect is Aspect.CONTENT:
            return False
        return operand.attribute is None or operand.attribute in self._stored

    @cached_property
    def _stored(self) -> frozenset[str]:
        """The attributes that functions of the project store, constructors apart."""
        found = set()
        for module in self._project.modules.values():
            for node in module.tree.nodes(ast.Attribute):
                if not isinstance(node.ctx, ast.Load):
                    function = module.tree.function(node)
                    if function is not None and function.name != "__init__":
                        found.add(node.attr)
        return frozenset(found)


def _shared(term: Term, shared: frozenset[str]) -> bool:
    return any(operand.text in shared for operand in term.operands)


def _read(test: ast.expr) -> set[str]:
    found = set()
    for node in ast.walk(test):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            found.add(ast.unparse(node))
    return found


def _changes(node: ast.AST, operand: Operand) -> bool:
    name = _bound(node)
    if name is not None:
        return operand.text == name or operand.text.startswith((f"{name}.", f"{name}["))
    if isinstance(node, ast.Attribute):
        return operand.attribute == node.attr
    return operand.aspect is Aspect.PATH


def _bound(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.alias):
        return (node.asname or node.name).partition(".")[0]
    name = getattr(node, "name", None)
    return name if isinstance(name, str) else None
