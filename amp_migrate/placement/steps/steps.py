"""Optimizer steps of a unit: which they are, where the accumulation boundary is, where `update()` goes."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass

from amp_migrate.facts.paths import root, same, tail
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Function, Module
from amp_migrate.unit.cannot import Cannot
from amp_migrate.unit.order import Loop, in_branch, inside, key, levels, position

_BACKWARD = ("backward", "scale_loss")


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """One ``optimizer.step()``. `anchor` is its statement, or the loop over optimizers around it.

    `named` is the optimizer as its function reaches it, where that is not how it is written in the call.
    """

    module: Module
    function: Function
    call: ast.Call
    optimizer: ast.expr
    anchor: ast.stmt
    named: str = ""

    @property
    def tree(self) -> Tree:
        """The tree it stands in."""
        return self.module.tree

    @property
    def text(self) -> str:
        """The optimizer as it is written."""
        return self.named or self.tree.segment(self.optimizer)


@dataclass(frozen=True, eq=False, slots=True)
class Backward:
    """One backward of a unit: `node` is the `scale_loss` block or the plain ``loss.backward()`` call.

    `optimizers` holds the optimizer expressions it feeds, as far as they are written.
    """

    module: Module
    function: Function
    node: ast.With | ast.Call
    loss: ast.expr
    optimizers: tuple[ast.expr, ...]
    scaled: bool


def holds_backward(stmt: ast.AST) -> bool:
    """Tell whether a statement holds a backward, or opens the block of one."""
    return any(isinstance(n, ast.Call) and tail(n) in _BACKWARD for n in ast.walk(stmt))


def anchor_of(tree: Tree, call: ast.Call) -> ast.stmt:
    """Return the statement that steps: the loop, where a loop only visits optimizers."""
    stmt = tree.statement(call)
    optimizer = root(call.func)
    for level in levels(tree, stmt):
        if isinstance(level, ast.For) and level is not stmt:
            targets = {n.id for n in ast.walk(level.target) if isinstance(n, ast.Name)}
            if optimizer in targets:
                return level
    return stmt


def boundary(step: Step, backward: ast.AST) -> ast.If | None:
    """Return the outermost `if` around a step that a backward in the same loop or function does not share.

    An `if` that steps the optimizer whichever way it goes is no boundary.
    """
    found: ast.If | None = None
    for level in levels(step.tree, step.anchor):
        if level is step.anchor:
            continue
        if inside(step.tree, backward, level):
            return found
        if isinstance(level, ast.If) and not _steps_either_way(step, level):
            found = level
        if isinstance(level, Loop):
            return None
    return found


def outermost_anchor(step: Step) -> ast.stmt:
    """Return the statement that steps whichever way its tests go."""
    found = step.anchor
    for level in levels(step.tree, step.anchor):
        if level is step.anchor:
            continue
        if not isinstance(level, ast.If) or not _steps_either_way(step, level):
            break
        found = level
    return found


def _steps_either_way(step: Step, test: ast.If) -> bool:
    other = test.orelse if in_branch(step.tree, step.anchor, test.body) else test.body
    return any(
        isinstance(node, ast.Attribute) and node.attr == "step" and same(node.value, step.optimizer)
        for stmt in other
        for node in ast.walk(stmt)
    )


def updates(steps: list[Step], backwards: list[Backward]) -> list[ast.stmt]:
    """Return the statements after which `scaler.update()` goes, for the steps of one function."""
    if not steps:
        return []
    return _place(steps[0].tree, [s.anchor for s in steps], steps, backwards)


def _place(
    tree: Tree, anchors: list[ast.stmt], steps: list[Step], backwards: list[Backward]
) -> list[ast.stmt]:
    anchors = sorted(set(anchors), key=key)
    if len(anchors) == 1:
        return anchors
    children = children_of(tree, anchors)
    if len(children) == 1:
        return _inside_one(tree, children[0], anchors, steps, backwards)
    if any(isinstance(c, Loop) and c not in anchors for c in children):
        return _each(tree, children, anchors, steps, backwards)
    if any(c in anchors for c in children):
        return _after_repeats(tree, children, anchors, steps, backwards)
    return _conditional(tree, children, anchors, steps, backwards)


def _after_repeats(
    tree: Tree,
    children: list[ast.stmt],
    anchors: list[ast.stmt],
    steps: list[Step],
    backwards: list[Backward],
) -> list[ast.stmt]:
    """Return the last statement, and a place before each next step of an optimizer already stepped."""
    places: list[ast.stmt] = []
    group: list[ast.stmt] = []
    stepped: set[str] = set()
    for child in children:
        names = {ast.dump(s.optimizer) for s in steps if inside(tree, s.anchor, child)}
        if names & stepped:
            places += _group_end(tree, group, anchors, steps, backwards)
            group, stepped = [], set()
        group.append(child)
        stepped |= names
    return [*places, *_group_end(tree, group, anchors, steps, backwards)]


def _group_end(
    tree: Tree,
    group: list[ast.stmt],
    anchors: list[ast.stmt],
    steps: list[Step],
    backwards: list[Backward],
) -> list[ast.stmt]:
    if len(group) == 1:
        return _each(tree, group, anchors, steps, backwards)
    return [group[-1]]


def _each(
    tree: Tree,
    children: list[ast.stmt],
    anchors: list[ast.stmt],
    steps: list[Step],
    backwards: list[Backward],
) -> list[ast.stmt]:
    """Return the places of the updates of each child by itself."""
    return [
        place
        for child in children
        for place in _place(tree, [a for a in anchors if inside(tree, a, child)], steps, backwards)
    ]


def _conditional(
    tree: Tree,
    children: list[ast.stmt],
    anchors: list[ast.stmt],
    steps: list[Step],
    backwards: list[Backward],
) -> list[ast.stmt]:
    """Place updates where every step stands under a condition of its own."""
    tests = [ast.dump(c.test) if isinstance(c, ast.If) else str(id(c)) for c in children]
    last = children[-1]
    inner = [a for a in anchors if inside(tree, a, last)]
    if (
        len(set(tests)) == 1
        and isinstance(last, ast.If)
        and all(in_branch(tree, a, last.body) for a in inner)
    ):
        return _place(tree, inner, steps, backwards)
    if _phases(tree, children, steps, backwards):
        return _each(tree, children, anchors, steps, backwards)
    step = next(s for s in steps if inside(tree, s.anchor, last))
    raise Cannot(
        "AMP905",
        step.module,
        step.call,
        "several optimizers step under different tests after a backward that they share",
        "put their steps under one test, then run again",
    )


def _phases(
    tree: Tree, children: list[ast.stmt], steps: list[Step], backwards: list[Backward]
) -> bool:
    """Tell whether each later optimizer is fed only by backward passes after the earlier steps."""
    for earlier, later in itertools.pairwise(children):
        stepped = [s.optimizer for s in steps if inside(tree, s.anchor, later)]
        names = {ast.dump(optimizer) for optimizer in stepped}
        unknown = any(isinstance(optimizer, ast.Call) for optimizer in stepped)
        for backward in backwards:
            feeds = {ast.dump(o) for o in backward.optimizers}
            if (unknown or not feeds or feeds & names) and key(backward.node) <= key(earlier):
                return False
    return True


def children_of(tree: Tree, anchors: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of the innermost block around all anchors that hold them, in order."""
    chains = [list(levels(tree, anchor)) for anchor in anchors]
    for candidate in chains[0]:
        block = tree.block(candidate)
        picks = [next((s for s in chain if tree.block(s) is block), None) for chain in chains]
        if all(picks):
            unique = {id(p): p for p in picks if p is not None}
            return sorted(unique.values(), key=lambda s: position(tree, s))
    return anchors


def _inside_one(
    tree: Tree,
    child: ast.stmt,
    anchors: list[ast.stmt],
    steps: list[Step],
    backwards: list[Backward],
) -> list[ast.stmt]:
    """Place updates where all anchors stand in different branches of one statement."""
    groups: dict[int, list[ast.stmt]] = {}
    for anchor in anchors:
        branch = next(s for s in levels(tree, anchor) if parent_statement(tree, s) is child)
        groups.setdefault(id(tree.block(branch)), []).append(anchor)
    return [place for group in groups.values() for place in _place(tree, group, steps, backwards)]


def parent_statement(tree: Tree, stmt: ast.stmt) -> ast.AST:
    """Return the statement (or scope) whose block holds a statement."""
    up = tree.holder(stmt)
    while isinstance(up, ast.ExceptHandler | ast.match_case):
        up = tree.parents[up]
    return up
