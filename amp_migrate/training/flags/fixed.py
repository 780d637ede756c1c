"""Variables and attributes that a test sets to a number for good: ``if fp16: accumulation_steps = 1``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.facts.below import every
from amp_migrate.facts.constants import number
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.project import Function, Project
from amp_migrate.project.order import inside
from amp_migrate.project.reach import where_set
from amp_migrate.training.flags.setting import setters


def is_fixed(
    project: Project, function: Function, node: ast.expr, value: int, known: Assumption
) -> bool:
    """Tell whether an expression of a function is a number wherever something is `known` there, as a test in front of it sets it so.

    It is a variable of the function, or an attribute of its object that the constructor alone sets.
    """
    if isinstance(node, ast.Name):
        stores = function.module.scopes.bindings(function.scope, node.id)
        assigned = [n for n in stores if not isinstance(n, ast.arg)]
        return _is_last(project, function, assigned, value, known, before=node)
    if not isinstance(node, ast.Attribute) or not function.is_receiver(node.value):
        return False
    constructor = function.cls.method("__init__") if function.cls is not None else None
    stored = _set_by(project, constructor, node.attr) if constructor is not None else None
    places = {store for _, store in setters(project, function, node, making=True)}
    if constructor is None or not stored or not places <= set(stored):
        return False
    return constructor.receiver == function.receiver and _is_last(
        project, constructor, stored, value, known
    )


def _set_by(project: Project, constructor: Function, attr: str) -> list[ast.AST] | None:
    """Return where a constructor sets an attribute; None where anything else may set one of that name."""
    found = where_set(project, attr)
    others = any(project.function_of(*place) is not constructor for place in found)
    return None if others else [node for _, node in found]


def _is_last(
    project: Project,
    function: Function,
    stores: Iterable[ast.AST],
    value: int,
    known: Assumption,
    before: ast.AST | None = None,
) -> bool:
    """Tell whether the last of all stores of a function gives a number, and runs wherever something is `known`."""
    tree, body = function.module.tree, list(getattr(function.node, "body", ()))
    placed = [(_place(function, body, store), store) for store in stores]
    last = max((place for place, _ in placed), default=-1)
    ends = [store for place, store in placed if place == last]
    if last < 0 or len(ends) != 1 or any(place < 0 for place, _ in placed):
        return False
    if before is not None and _place(function, body, before) <= last:
        return False
    statement, top = tree.statement(ends[0]), body[last]
    if not isinstance(statement, ast.Assign) or number(statement.value) != value:
        return False
    straight = top is statement or (isinstance(top, ast.If) and tree.parent(statement) is top)
    leaving = (node for stmt in body[: last + 1] for node in ast.walk(stmt))
    if not straight or any(isinstance(node, ast.Return) for node in leaving):
        return False
    return all(
        evaluate(side.test, known) is holds
        and _stays(project, function, body, last, side.test, own=before is not None)
        for side, holds in tree.sides(statement)
    )


def _stays(
    project: Project, function: Function, body: list[ast.stmt], last: int, test: ast.expr, own: bool
) -> bool:
    """Tell whether what a test reads is set before it alone: variables of the function that has it, or attributes of its object."""
    for part in every(test):
        if isinstance(part, ast.Attribute):
            stored = _set_by(project, function, part.attr)
            if own or stored is None or any(_place(function, body, s) >= last for s in stored):
                return False
        elif isinstance(part, ast.Name) and not function.is_receiver(part):
            bound = function.module.scopes.bound(part)
            if not own or len(bound) != 1 or not isinstance(bound[0], ast.arg):
                return False
    return True


def _place(function: Function, body: list[ast.stmt], node: ast.AST) -> int:
    """Return which statement of a function holds a node; -1 for none."""
    tree = function.module.tree
    return next((i for i, stmt in enumerate(body) if inside(tree, node, stmt)), -1)
