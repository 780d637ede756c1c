"""Evaluations with a `yield`, a backward or a step of an optimizer among them: autocast ends before those, and begins again behind."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.autocast.evaluated.unfed import run_backward
from amp_migrate.autocast.inlines import argument
from amp_migrate.facts.below import blocks, children
from amp_migrate.facts.paths import YIELDS, called_alone, calls_anything, walk
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import Edit, Insert, Replace, ReplaceExpression, Wrap
from amp_migrate.rules.autocast.amp104_autocast import assignment, indent
from amp_migrate.rules.base import Context
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.region import Region


def suspended(context: Context, region: Region, call: str) -> list[Edit] | None:
    """Return the edits that put a region under autocast without its `yield`s and what trains; None where it has neither.

    What a `yield` gives, what a test or a loop is about, and a loss that is computed for a backward, gets a name in a
    statement before, unless it has one already. Raises `Cannot` where it has to stay where it is.
    """
    statements = region.statements()
    if not any(
        _yields(stmt) or _trains(context, region, stmt) or _loss(context, region, stmt)
        for stmt in statements
    ):
        return None
    return list(_edits(context, region, statements, f"with {call}:"))


def _edits(
    context: Context, region: Region, statements: list[ast.stmt], header: str
) -> Iterator[Edit]:
    project, tree = context.unit.project, region.module.tree
    done = {inline.node for inline in context.inlines}
    before: list[ast.stmt] = []

    def block(computed: str = "") -> Iterator[Edit]:
        while before and not calls_anything(before[0]):
            before.pop(0)
        if before:
            yield Wrap(tree.span(before[0]), tree.span(before[-1]), header, computed)
        elif computed:
            yield Insert(tree.span(stmt), f"{header}\n    {indent(computed)}", after=False)
        before.clear()

    for stmt in statements:
        value, loss = _given(stmt), _loss(context, region, stmt)
        if loss is not None and loss not in done:
            inline = argument(project, region.function, loss, [], is_loss=True)
            yield from block(assignment(inline))
            yield _named(tree, stmt, loss, inline.name)
        elif value in done:
            yield from block()
        elif value is not None and calls_anything(value):
            inline = argument(project, region.function, value, [], is_loss=False)
            yield from block(assignment(inline))
            yield ReplaceExpression(tree.span(value), inline.name)
        elif _yields(stmt):
            yield from block()
            for inner in blocks(stmt):
                yield from _edits(context, region, inner, header)
        elif _trains(context, region, stmt):
            head = _computed(context, region, stmt)
            if head is not None:
                inline = argument(project, region.function, head, [], is_loss=False)
                yield from block(assignment(inline))
                yield ReplaceExpression(tree.span(head), inline.name)
            else:
                yield from block()
            for inner in blocks(stmt):
                for run in _running(context, region, inner):
                    yield from _edits(context, region, run, header)
        else:
            before.append(stmt)
    yield from block()


def _named(tree: Tree, stmt: ast.stmt, loss: ast.expr, name: str) -> Edit:
    """Return the edit that gives a backward its loss by name, without the parentheses that were around that."""
    call = called_alone(stmt)
    if call is None or tree.span(loss)[:2] == tree.span(stmt)[:2] or "#" in tree.segment(stmt):
        return ReplaceExpression(tree.span(loss), name)
    given = ", ".join(tree.segment(part) for part in (*call.args, *call.keywords))
    return Replace(tree.span(stmt), f"{name}.backward({given})")


def _loss(context: Context, region: Region, stmt: ast.stmt) -> ast.expr | None:
    """Return the loss that a statement computes for a backward of its own, which no GradScaler scales."""
    return run_backward(context.unit, region.module, stmt)


def _trains(context: Context, region: Region, stmt: ast.stmt) -> bool:
    """Tell whether a compound statement runs a backward or a step."""
    return any(blocks(stmt)) and context.unit.trains(region.module, stmt)


def _computed(context: Context, region: Region, stmt: ast.stmt) -> ast.expr | None:
    """Return what a network computes for the head of a statement: of a comparison the side that it computes."""
    head = getattr(stmt, "test", None) or getattr(stmt, "iter", None)
    while isinstance(head, ast.Compare | ast.UnaryOp | ast.BoolOp):
        head = next((n for n in children(head) if _runs(context, region, n)), None)
    return head if isinstance(head, ast.expr) and _runs(context, region, head) else None


def _running(
    context: Context, region: Region, statements: list[ast.stmt]
) -> Iterator[list[ast.stmt]]:
    """Yield the runs of statements of a block that run networks or hold what does, and end with one."""
    run: list[ast.stmt] = []
    for stmt in statements:
        if _runs(context, region, stmt) and (
            any(blocks(stmt)) or not context.unit.trains(region.module, stmt)
        ):
            run.append(stmt)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _runs(context: Context, region: Region, node: ast.AST) -> bool:
    return context.unit.forwards.strength(region.module, node) >= Forward.CRITERION


def _given(stmt: ast.stmt) -> ast.expr | None:
    """Return what a statement hands out that is a `yield`, or stores what comes back of one."""
    value = stmt.value if isinstance(stmt, ast.Expr | ast.Assign) else None
    return value.value if isinstance(value, ast.Yield) else None


def _yields(stmt: ast.stmt) -> bool:
    return any(isinstance(node, YIELDS) for node in walk(stmt))
