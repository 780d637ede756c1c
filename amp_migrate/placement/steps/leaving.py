"""Where an iteration is left between a step, or an `unscale_`, and the `update()` that it needs."""

from __future__ import annotations

import ast
from typing import TypeGuard

from amp_migrate.facts.tree import Tree
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Function, Project
from amp_migrate.project.order import dominates, inside, loop_of
from amp_migrate.project.rounds import may_skip, runs_before

Jump = ast.Continue | ast.Break | ast.Return | ast.Raise
_ENDS = (("__next__", "StopIteration"), ("__anext__", "StopAsyncIteration"))


def exits(
    project: Project,
    function: Function,
    steps: list[ast.stmt],
    unscaled: list[ast.stmt],
    places: list[ast.stmt],
) -> list[ast.stmt]:
    """Return the jumps of a function past its updates that need an update of their own before them.

    `steps` are the statements that step, `unscaled` those before which gradients are unscaled, `places`
    those that an update follows.
    """
    tree = function.module.tree
    jumps = [
        node
        for node in function.own_nodes
        if leaves_iteration(node, function)
        and any(
            inside(tree, place, _left(tree, node)) and may_skip(project, function, node, place)
            for place in places
        )
    ]
    found: list[ast.stmt] = []
    for jump in jumps:
        updated = [*places, *(other for other in jumps if other is not jump)]
        if _needs_update(project, function, jump, steps, unscaled, updated):
            found.append(jump)
    return found


def leaves_iteration(node: ast.AST, function: Function) -> TypeGuard[Jump]:
    """Tell whether a node leaves an iteration: a jump, or what tells that an object has no further item."""
    if not isinstance(node, ast.Raise):
        return isinstance(node, ast.Continue | ast.Break | ast.Return)
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    name = raised.id if isinstance(raised, ast.Name) else ""
    return (function.name, name) in _ENDS


def _left(tree: Tree, jump: Jump) -> ast.AST:
    """Return the loop, or for a `return` the file, inside of which a jump goes."""
    loop = None if isinstance(jump, ast.Return | ast.Raise) else loop_of(tree, jump)
    return loop if loop is not None else tree.module


def _needs_update(
    project: Project,
    function: Function,
    jump: Jump,
    steps: list[ast.stmt],
    unscaled: list[ast.stmt],
    updated: list[ast.stmt],
) -> bool:
    """Tell whether a jump comes behind a step without an update: `updated` have one, or need one themselves."""
    tree = function.module.tree
    left = _left(tree, jump)
    open_marks = [
        mark
        for mark in [*steps, *unscaled]
        if mark is not left
        and inside(tree, mark, left)
        and mark not in updated
        and runs_before(project, function, mark, jump, updated)
    ]
    if any(_always(tree, mark, jump, mark in unscaled) for mark in open_marks):
        return True
    if open_marks:
        raise Cannot(
            "AMP905",
            *function.at(jump),
            "this leaves the iteration behind a clip or a step that not every iteration comes to",
            "leave the iteration before the clip and the step, or behind both, then run again",
        )
    return False


def _always(tree: Tree, mark: ast.stmt, jump: Jump, unscaled: bool) -> bool:
    if unscaled and inside(tree, jump, mark):
        return True
    while isinstance(up := tree.parent(mark), ast.With) and not inside(tree, jump, up):
        mark = up
    return dominates(tree, mark, jump)
