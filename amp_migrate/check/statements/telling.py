"""Whether what a rule moves with a clip does something else too, which would run less often than before."""

from __future__ import annotations

import ast

from amp_migrate.check.events.sides import Side
from amp_migrate.facts.below import every
from amp_migrate.facts.paths import all_given, root
from amp_migrate.project import Function
from amp_migrate.project.reach import reached_by
from amp_migrate.training.bindings import values_of
from amp_migrate.training.events import Kind
from amp_migrate.training.gradients.magnitude import derived


def passes_on(side: Side, statement: ast.stmt) -> bool:
    """Tell whether a function that a statement runs hands a computed value to a call whose result it drops.

    What it read of gradients is none, as a norm that it prints.
    """
    run = {f for node in every(statement) for f in reached_by(side.project, node)}
    return any(_hands_on(side, helper) for helper in run)


def _hands_on(side: Side, helper: Function) -> bool:
    events = side.program.training.of(helper).items()
    reading = [node for node, held in events if any(e.kind is Kind.READ_GRAD for e in held)]
    read = {helper.module.tree.statement(node) for node in reading}
    known = derived(helper, reading)
    alone = (n for n in helper.own_nodes if isinstance(n, ast.Expr) and n not in read)
    calls = (n.value for n in alone if isinstance(n.value, ast.Call))
    return any(
        _is_computed(side, helper, name)
        for call in calls
        if root(call.func) not in known
        for given in all_given(call)
        for name in every(given)
        if isinstance(name, ast.Name) and name.id not in known
    )


def _is_computed(side: Side, helper: Function, name: ast.Name) -> bool:
    """Tell whether a call gave what a variable holds, here or where a caller hands it in."""
    module = helper.module
    values = list(values_of(module, name))
    if any(isinstance(binding, ast.arg) for binding in module.scopes.bound(name)):
        for got in side.project.received(helper, name.id):
            values += [got.node] if got.node is not None else []
            if isinstance(got.node, ast.Name):
                values += values_of(got.function.module, got.node)
    return any(isinstance(part, ast.Call) for value in values for part in every(value))
