"""What reads gradients inside a `scale_loss` block moves behind it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from amp_migrate.facts.paths import tail, walk
from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, Edit, Move, Status
from amp_migrate.project.reach import reached_by
from amp_migrate.rules.base import Context, Rule, decision
from amp_migrate.training.beliefs import READS_GRADIENTS


def clips(context: Context, block: ScaleLoss) -> Iterator[ast.Call]:
    """Yield the calls in a block that clip gradients, themselves or in what they run."""
    for stmt in block.body:
        for node in walk(stmt):
            if isinstance(node, ast.Call):
                if tail(node) in READS_GRADIENTS or _clips_within(context, node):
                    yield node


def _clips_within(context: Context, call: ast.Call) -> bool:
    """Tell whether a call runs what clips, and trains nothing."""
    run = reached_by(context.unit.project, call)
    return run.isdisjoint(context.unit.training) and any(
        tail(inner) in READS_GRADIENTS for function in run for inner in function.calls
    )


def steps(context: Context, block: ScaleLoss) -> Iterator[ast.Call]:
    """Yield the optimizer steps in a block."""
    inside = {node for stmt in block.body for node in ast.walk(stmt)}
    yield from (step.call for step in context.unit.steps if step.call in inside)


def steps_while_entered(context: Context, block: ScaleLoss) -> Iterator[ast.Call]:
    """Yield the optimizer steps that run while a block is entered: in what is called there, or around which a generator enters it."""
    project, function = context.unit.project, block.site.function
    bodies = list(block.body)
    if any(isinstance(node, ast.Yield) for stmt in bodies for node in walk(stmt)):
        for site in project.callers(function):
            up = site.function.module.tree.parent(site.call)
            entered = site.function.module.tree.parent(up) if isinstance(up, ast.withitem) else None
            bodies += entered.body if isinstance(entered, ast.With | ast.AsyncWith) else []
    inside = {node for stmt in bodies for node in walk(stmt)}
    calls = [node for node in inside if isinstance(node, ast.Call)]
    run = {below for call in calls for below in reached_by(project, call)}
    for step in context.unit.steps:
        if step.call in inside or step.function in run:
            yield step.call


def fixed(
    context: Context,
    block: ScaleLoss,
    rule: Rule,
    nodes: Iterable[ast.Call],
    switched_off: str,
    advice: str,
    message: str,
) -> Iterator[Decision]:
    """Report the mistakes of a block as fixed; raises `Cannot` with the rule's code where it is switched off."""
    for node in nodes:
        module = context.unit.project.module_of(node)
        if not context.settings.enabled(rule.code):
            raise Cannot(rule.code, module, node, switched_off, advice)
        yield decision(rule, Status.FIXED, module, node, message)


def ended(context: Context, block: ScaleLoss, made: Iterable[Decision]) -> Iterator[Decision]:
    """Give decisions about a block the edits that end it before its first clip or step."""
    path = block.site.module.path
    for one in made:
        edits = behind(context, block, one.finding.code)
        yield replace(one, edits=[(path, edit) for edit in edits])


def behind(context: Context, block: ScaleLoss, code: str) -> list[Edit]:
    """Return the edits that end a block before its first clip or step.

    Statements that move to the accumulation boundary are left to that move. Raises `Cannot` with `code` where a
    backward follows.
    """
    tree = block.site.module.tree
    readers = {*clips(context, block), *steps(context, block)}
    body = block.body
    first = next(n for n, stmt in enumerate(body) if readers & set(ast.walk(stmt)))
    for call in block.backwards:
        if any(call in set(ast.walk(stmt)) for stmt in body[first:]):
            raise Cannot(
                code,
                block.site.module,
                call,
                "a backward of this scale_loss block follows a clip or a step",
                "end the block after its last backward, clip and step behind it, then run again",
            )
    elsewhere = {stmt for unscale in context.unscales for stmt in unscale.moved}
    anchor = tree.span(block.node)
    return [
        Move(tree.span(stmt), anchor, after=True) for stmt in body[first:] if stmt not in elsewhere
    ]
