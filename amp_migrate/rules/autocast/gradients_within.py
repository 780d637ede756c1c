"""Gradients that `torch.autograd.grad` takes within a forward or a loss: Apex ran no backward pass with casts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.autocast.disabled import Disabled
from amp_migrate.autocast.spared.statements import moving, nodes_of
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import Edit, ReplaceExpression, Wrap
from amp_migrate.rules.autocast.evaluation_places import cast_parts
from amp_migrate.rules.base import Context
from amp_migrate.training.contexts import in_autocast
from amp_migrate.training.gradients.taken import Taken, taken_in
from amp_migrate.training.steps import takes_gradients

_ATOMS = ast.Name | ast.Attribute | ast.Call | ast.Subscript


def taken_within(context: Context, disabled: Disabled) -> Iterator[tuple[Taken, list[Edit]]]:
    """Yield the statements that take gradients, with the edits that keep casts out of them.

    Those between two blocks only lack the casts that these had for sums.
    """
    unit = context.unit
    project, call = unit.project, context.spelling.autocast("False")
    for between in unit.between:
        if between.summed and between.call not in unit.gone:
            yield between, summed(between)
    if not any(takes_gradients(project, *each) for each in unit.calls()):
        return
    done: set[ast.stmt] = {between.statement for between in unit.between} | moving(unit)
    for function, node in nodes_of(project, cast_parts(context, disabled)):
        module = function.module
        if not isinstance(node, ast.Call) or not takes_gradients(project, module, node):
            continue
        statement = module.tree.statement(node)
        if statement in done or node in unit.gone or node in disabled.calls:
            continue
        done.add(statement)
        found = taken_in(project, unit.forwards.indifferent, function, statement)
        if found is not None and not in_autocast(project, module, node):
            span = module.tree.span(statement)
            yield found, [Wrap(span, span, f"with {call}:"), *summed(found)]


def summed(found: Taken) -> list[Edit]:
    """Return the edits that make what a statement sums before it takes gradients fp32, as autocast did."""
    tree = found.function.module.tree
    return [ReplaceExpression(tree.span(node), _widened(tree, node)) for node in found.summed]


def _widened(tree: Tree, node: ast.expr) -> str:
    text = tree.segment(node)
    return f"{text}.float()" if isinstance(node, _ATOMS) else f"({text}).float()"
