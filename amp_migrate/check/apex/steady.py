"""What of the facts of a run stays as it was at an initialize while AMP is on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache, partial

from amp_migrate.check.apex.disabling import States
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.apex.initialized import OFF, Initialized
from amp_migrate.facts.closure import spread
from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.flow.changes import stored_name
from amp_migrate.flow.paths import leads
from amp_migrate.flow.terms import Aspect, Operand, Term, names_of, term
from amp_migrate.project import Function
from amp_migrate.project.relatives import apart, properties
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.bindings import puts_back

_Stores = list[tuple[Function, ast.AST]]


def steady(
    program: Program, apex: Initialized, begun: Mapping[Function, States], facts: Facts
) -> Facts:
    """Return the facts that nothing sets in a run once AMP is on; `begun` says where it is when functions begin."""
    if not any(known.facts for _, known in facts.stated):
        return facts
    again = cache(partial(_again, program, apex))
    stores = [
        (function, point.node)
        for function, start in begun.items()
        for point, states in apex.states(function, start).items()
        if point.kind is Kind.STORE and states != OFF
        if _stays(program.graph(function), point, again(function))
    ]
    return Facts(
        tuple(
            (where, known.only(partial(_lasts, program, stores, where)))
            for where, known in facts.stated
        )
    )


def stays(program: Program, apex: Initialized, function: Function, point: Point) -> bool:
    """Tell whether what a point sets is still there where its function ends, or where it is run next."""
    return _stays(program.graph(function), point, _again(program, apex, function))


def _stays(graph: Graph, point: Point, again: list[Point]) -> bool:
    return not again or leads(graph.order(False), [point], [graph.exit], again)


def _again(program: Program, apex: Initialized, function: Function) -> list[Point]:
    """Return the points of a function that initialize Apex, or may come to that."""
    return [
        p
        for p in program.graph(function).points
        if isinstance(p.node, ast.Call) and p.kind is Kind.CALL and apex.initializes(p.node)
    ]


def _lasts(program: Program, stores: _Stores, where: Function, held: Term) -> bool:
    """Tell whether none of some stores may change what a term of a function comes out as."""
    return not any(
        _changes(program, *store, at, o, read)
        for at, read in _read(program, where, held)
        for store in stores
        for o in read.operands
    )


def _read(program: Program, where: Function, held: Term) -> Iterator[tuple[Function, Term]]:
    """Yield a term of a function, and what the properties read that it is made of."""

    def inside(one: tuple[Function, Term]) -> Iterator[tuple[Function, Term]]:
        for text in {o.text for o in one[1].operands if o.attribute is not None}:
            for method in properties(program.project, one[0], text):
                reads = (n for n in method.own_nodes if isinstance(n, ast.expr))
                yield from ((method, found) for n in reads if (found := term(n)) is not None)

    yield from spread([(where, held)], inside)


def _changes(
    program: Program,
    function: Function,
    node: ast.AST,
    where: Function,
    operand: Operand,
    held: Term,
) -> bool:
    if operand.aspect is Aspect.BINDING:
        name = stored_name(node)
        if name != operand.text or function.module is not where.module:
            return False
        scopes = where.module.scopes
        if isinstance(node, ast.Name) and scopes.owner(node) is not scopes.find(where.scope, name):
            return False
        if puts_back(function.module, node):
            return False
        return not (held.asks_none and _made_of_itself(function, node, name))
    if operand.attribute is None or not isinstance(node, ast.Attribute):
        return operand.aspect is Aspect.PATH and _spelt(node, operand)
    if operand.attribute != node.attr or _is_made(function, node):
        return False
    ones = [
        part.value
        for part in where.own_nodes
        if isinstance(part, ast.Attribute) and ast.unparse(part) == operand.text
    ]
    return not apart(program.project, where.module, ones, function.module, node.value)


def _spelt(node: ast.AST, operand: Operand) -> bool:
    """Tell whether an item is set that is spelt like an operand."""
    found = term(node) if isinstance(node, ast.Subscript) else None
    return found is not None and found.text.partition("[")[2] == operand.text.partition("[")[2]


def _is_made(function: Function, node: ast.Attribute) -> bool:
    """Tell whether a constructor sets an attribute of the object that it makes."""
    return function.name == "__init__" and function.is_receiver(node.value)


def _made_of_itself(function: Function, node: ast.AST, name: str) -> bool:
    """Tell whether a name gets what a call makes of what it held."""
    value = getattr(function.module.tree.statement(node), "value", None)
    return isinstance(value, ast.Call) and name in names_of(value)
