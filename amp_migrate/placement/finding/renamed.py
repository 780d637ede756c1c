"""Optimizers by a name that a function gives them on the way: ``this = optimizer``."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import path, root, same
from amp_migrate.flow import Graph, Point, leads
from amp_migrate.flow.cfg.points import Kind
from amp_migrate.flow.paths import Paths
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Function
from amp_migrate.project.rounds import graph_of
from amp_migrate.training.steps import Step


def reached(unit: Unit, function: Function, text: str, at: ast.stmt) -> str:
    """Return an optimizer as it can be written before a statement: by what it is called there already.

    Raises `Cannot` where the name gets its optimizer only later, and not by another name.
    """
    graph = graph_of(unit.project, function)
    order = graph.order(exceptions=False)
    here = graph.within(at)
    _refuse_chosen_later(function, graph, text, at)
    seen: set[str] = set()
    while here:
        base = root(ast.parse(text, mode="eval").body) or ""
        made = [node for node in function.own_nodes if _binds(node, base)]
        empty = _emptied(function, graph, base, here[0])
        made = [node for node in made if node not in empty]
        late = [node for node in made if not order.dominates(graph.within(node)[-1], here[0])]
        if empty and len(made) != 1:
            raise _late(function, text, f"`{base}` gets its optimizer", at)
        if not late or len(made) != 1 or base in seen:
            found, attribute = _of_attributes(unit, function, text, here[0])
            if found is None:
                raise _late(function, text, f"`{attribute}` gets its optimizer", at)
            return found
        stmt = made[0]
        other = path(stmt.value) if isinstance(stmt, ast.Assign) else None
        if other is None and (stored := _stored(function, text)) is not None:
            seen.add(base)
            text = stored
            continue
        if other is None or (graph.within(stmt)[-1] is here[0]):
            if len(function.module.scopes.bindings(function.scope, base)) > 1:
                return text  # a tuple that is unpacked gives it as well
            raise _late(function, text, f"`{base}` gets its optimizer", at)
        seen.add(base)
        text = other + text[len(base) :]
    return text


def _refuse_chosen_later(function: Function, graph: Graph, text: str, at: ast.stmt) -> None:
    """Raise `Cannot` where what chooses an optimizer out of a container is set between a statement and its use."""
    named = ast.parse(text, mode="eval").body
    keys = {n.id for n in ast.walk(named) if isinstance(n, ast.Name)} - {root(named)}
    here, order = graph.within(at)[:1], graph.order(exceptions=False)
    nodes = function.own_nodes if keys and here else ()
    uses = [p for n in nodes if isinstance(n, ast.expr) and same(n, named) for p in graph.at(n)]
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in keys and isinstance(node.ctx, ast.Store):
            set_at = graph.at(node)
            if leads(order, here, set_at) and leads(order, set_at, uses, here):
                raise _late(
                    function,
                    text,
                    f"`{node.id}`, which chooses it, is set",
                    at,
                    f"read them in a `for` that sets `{node.id}`, then run again",
                )


def at_entry(unit: Unit, step: Step) -> str | None:
    """Return the optimizer of a step as it can be written where its function begins; None where it is not there yet."""
    graph = graph_of(unit.project, step.function)
    return _of_attributes(unit, step.function, step.text, graph.entry)[0]


def _of_attributes(
    unit: Unit, function: Function, text: str, here: Point
) -> tuple[str | None, str]:
    """Return an optimizer as it can be written at a point from which each way to its step sets an attribute of its name.

    None where it is not there by a name; with it that attribute.
    """
    graph = graph_of(unit.project, function)
    order = graph.order(exceptions=False)
    parts = text.split(".")
    steps = [p for s in unit.steps_of(function) if s.text == text for p in graph.at(s.call)]
    for prefix in (".".join(parts[:count]) for count in range(2, len(parts) + 1)):
        stores = _assignments(function, prefix)
        set_at = graph.within(stores[0])[-1:] if len(stores) == 1 and steps else ()
        if not set_at or not all(order.must_pass(here, step, set_at) for step in steps):
            continue
        given = path(stores[0].value)
        other = given + text[len(prefix) :] if given is not None else _stored(function, text)
        return (other if other != text else None), prefix
    return text, text


def _assignments(function: Function, text: str) -> list[ast.Assign]:
    return [
        node
        for node in function.own_nodes
        if isinstance(node, ast.Assign) and any(path(target) == text for target in node.targets)
    ]


def _late(
    function: Function,
    text: str,
    happens: str,
    at: ast.stmt,
    advice: str = "do that before this, then run again",
) -> Cannot:
    return Cannot(
        "AMP907",
        *function.at(at),
        f"gradients of {text} are read here, and {happens} only later",
        advice,
    )


def _stored(function: Function, text: str) -> str | None:
    """Return what the only assignment to an attribute of an object that a function makes stores there, by its name."""
    stores = _assignments(function, text)
    return path(stores[0].value) if len(stores) == 1 and "." in text else None


def _emptied(function: Function, graph: Graph, name: str, here: Point) -> list[ast.AST]:
    """Return the statements that leave None in a name which a way leads from to a point, and that is set behind it."""
    stores = [p for p in graph.points if p.kind is Kind.STORE and path(p.node) == name]
    empty = [p for p in stores if isinstance(p.value, ast.Constant) and p.value.value is None]
    others = [p for p in stores if p not in empty]
    if not empty or not leads(graph.order(exceptions=False), [here], others, empty):
        return []
    ways = Paths(graph, exceptions=False)
    reaching = [p for p in empty if leads(ways, [p], [here], stores)]
    return [function.module.tree.statement(p.node) for p in reaching]


def _binds(node: ast.AST, name: str) -> bool:
    """Tell whether a statement assigns a name by itself."""
    return (
        isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == name
    )
