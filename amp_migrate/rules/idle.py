"""Parameters of functions that scaled a loss, which nothing reads once Apex is gone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import arguments_of
from amp_migrate.flow.condition import names
from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.plan.model import Decision, Status
from amp_migrate.project import Function
from amp_migrate.rules.base import Context, Rule, decision


def idle_parameters(context: Context, rule: Rule) -> Iterator[Decision]:
    """Say of each function which of its parameters only Apex asked for."""
    found: dict[Function, list[ScaleLoss]] = {}
    for block in context.scaled.values():
        found.setdefault(block.site.function, []).append(block)
    for function, blocks in found.items():
        idle = _idle(context, function, blocks)
        if idle and function.node is not None:
            told = ", ".join(f"`{name}`" for name in idle)
            message = f"nothing reads {told} of {function.qualname}() any more"
            advice = "delete what it takes there, and what its calls pass for that"
            yield decision(
                rule, Status.NOTE, function.module, function.node, message, advice=advice
            )


def _idle(context: Context, function: Function, blocks: list[ScaleLoss]) -> list[str]:
    """Return the parameters that were read for Apex alone: by its calls, and by tests of which one arm is left."""
    if function.node is None or len(context.unit.project.family(function)) > 1:
        return []
    gone = set(context.unit.gone)
    for block in blocks:
        gone |= set(ast.walk(block.site.node)) - set(ast.walk(block.loss))
        if context.is_gone(block.node):
            above = function.module.tree.ancestors(block.node)
            test = next((up for up in above if isinstance(up, ast.If)), None)
            if test is not None and test not in context.branches.prefixes:
                gone |= set(ast.walk(test.test))
    for collapse in context.branches.collapses.values():
        if collapse.site.function is function:
            gone |= set(ast.walk(collapse.node.test))
    read = _asked(context, function) | {context.unit.home.carriers.parameters.get(function)}
    loads: dict[str, list[ast.AST]] = {}
    for node in function.all_nodes:
        if isinstance(node, ast.Name):
            loads.setdefault(node.id, []).append(node)
    given = [p.arg for p in arguments_of(function.node.args) if p.arg != function.receiver]
    return [p for p in given if p in loads and p not in read and gone.issuperset(loads[p])]


def _asked(context: Context, function: Function) -> set[str]:
    """Return the variables that autocast and the GradScaler ask in a function."""
    made = [c for c in context.creations.values() if c.site.function is function]
    texts = [text for c in made for text in (c.casts.text, c.scales.text)]
    for holder, part in context.unit.trained():
        if holder is function:
            told = context.casts.told(function, part, training=True)
            texts.append(told.text if told is not None else "")
    return {name for text in texts if text for name in names(text)}
