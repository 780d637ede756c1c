"""When the entries of a mapping are written, as seen from where it is used."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from itertools import takewhile

from amp_migrate.facts.tree import FunctionNode
from amp_migrate.flow import Graph, Point, build
from amp_migrate.project import Module

Entries = dict[str, ast.expr]


class Unread(Exception):
    """What a mapping holds cannot be told."""


@dataclass(frozen=True, slots=True)
class Write:
    """A statement that sets entries of a mapping, `always` where no way to the use leaves it out."""

    node: ast.AST
    entries: Entries
    always: bool = True


def in_time(
    module: Module, scope: FunctionNode | ast.Module, writes: list[Write], use: ast.AST
) -> list[Write]:
    """Return the writes that come before a use, those on every way there first, in their order.

    Raises `Unread` where some ways leave one out that a function called at another time may meet.
    """
    graph = build(scope)
    order = graph.order()
    later = _definition(module, scope, use)
    moments = graph.within(use)[-1:] if later is None else _runs(module, graph, later)
    if not moments:
        raise Unread
    placed: list[tuple[Point, Write]] = []
    sometimes: list[Write] = []
    for write in writes:
        points = graph.within(write.node)
        if not points:
            raise Unread
        point = points[-1]
        if all(order.dominates(point, moment) for moment in moments):
            placed.append((point, write))
        elif later is not None:
            raise Unread
        elif any(order.may_reach(point, moment) for moment in moments):
            sometimes.append(replace(write, always=False))
    first = order.as_they_run([point for point, _ in placed])
    always = [write for _, write in sorted(placed, key=lambda one: first.index(one[0]))]
    return always + sometimes


def _definition(module: Module, scope: FunctionNode | ast.Module, use: ast.AST) -> ast.AST | None:
    """Return the outermost function or class of a scope that a use stands in; None for one of the scope itself."""
    around = takewhile(lambda up: up is not scope, module.tree.ancestors(use))
    kinds = FunctionNode | ast.ClassDef | ast.Lambda
    return next((up for up in reversed(list(around)) if isinstance(up, kinds)), None)


def _runs(module: Module, graph: Graph, later: ast.AST) -> list[Point]:
    """Return when a function of a body runs: where it is called, if it is nothing but called there, else where it is defined."""
    defined = list(graph.at(later))[-1:]
    if not isinstance(later, ast.FunctionDef) or later.decorator_list:
        return defined
    owner = module.scopes.find(module.scopes.scope_of(later), later.name)
    names = module.scopes.spelt(owner, later.name)
    calls = [module.tree.parent(name) for name in names]
    alone = all(isinstance(c, ast.Call) and c.func is n for c, n in zip(calls, names, strict=True))
    points = [graph.at(call)[-1:] for call in calls if call is not None]
    if not (alone and points and all(points)) or isinstance(owner, ast.Module):
        return defined
    return [point for found in points for point in found]
