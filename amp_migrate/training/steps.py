"""Optimizer steps and backward passes: which they are, and where the accumulation boundary is."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from amp_migrate.facts.paths import called_alone, root, same, stored, tail
from amp_migrate.facts.tree import Tree
from amp_migrate.flow.cfg.subject import Fork, is_fork, question, ways
from amp_migrate.flow.condition import Condition, negate
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.project.order import Loop, comes_to, in_branch, inside, levels, position
from amp_migrate.training.origins.reaching import reaching
from amp_migrate.training.origins.repeated import visits
from amp_migrate.values.forms import spelt

_BACKWARD = ("backward", "scale_loss")
_TORCH_GRAD = "torch.autograd.grad"
_TORCH_BACKWARD = "torch.autograd.backward"


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
    def at(self) -> tuple[Module, ast.AST]:
        """Its file, and the node that a message points at."""
        return self.module, self.call

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

    @property
    def at(self) -> tuple[Module, ast.AST]:
        """Its file, and the node that a message points at."""
        return self.module, self.node


def backward_of(node: ast.AST) -> ast.expr | None:
    """Return what a ``loss.backward()`` is called on; None for anything else."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.value if isinstance(func, ast.Attribute) and func.attr == "backward" else None


def is_one(project: Project, module: Module, a: ast.expr, b: ast.expr) -> bool:
    """Tell whether two expressions of a file are one optimizer where they are read: written alike, or known to hold the same object."""
    return any(
        same(one, other)
        or project.values.group(module, one) == project.values.group(module, other) is not None
        for one in _held(project, module, a)
        for other in _held(project, module, b)
    )


def _held(project: Project, module: Module, node: ast.expr) -> list[ast.expr]:
    """Return an expression; for a variable that is another name of several objects in turn, the names of those it has there."""
    bound = module.scopes.bound(node) if isinstance(node, ast.Name) else ()
    if not isinstance(node, ast.Name) or len(bound) < 2:
        return [node]
    held = reaching(project).of(project.function_of(module, node), node)
    named = [value for value in held if isinstance(value, ast.expr) and spelt(value) is not None]
    return named if named and len(named) == len(held) else [node]


def holds_backward(stmt: ast.AST) -> bool:
    """Tell whether a statement holds a backward, or opens the block of one."""
    return any(isinstance(n, ast.Call) and tail(n) in _BACKWARD for n in ast.walk(stmt))


def anchor_of(project: Project, module: Module, call: ast.Call) -> ast.stmt:
    """Return the statement that steps: the loop, where a loop only visits optimizers."""
    stmt = module.tree.statement(call)
    optimizer = root(call.func)
    for level in levels(module.tree, stmt):
        if isinstance(level, ast.For) and level is not stmt and optimizer is not None:
            if visits(project, module, level, optimizer):
                return stmt if _begins_anew(level) else level
    return stmt


def _begins_anew(loop: ast.For) -> bool:
    """Tell whether each round of a loop clears the gradients of what it visits, and only then runs a backward of its own."""
    names, cleared = stored(loop.target), False
    for stmt in loop.body:
        if holds_backward(stmt):
            return cleared
        cleared = cleared or ((held := cleared_by(stmt)) is not None and root(held) in names)
    return False


def visited_around(project: Project, backward: Backward) -> ast.For | None:
    """Return the loop around a backward whose rounds each go to another optimizer, which its block names."""
    tree = backward.module.tree
    names = {root(node) for node in backward.optimizers} - {None}
    for level in levels(tree, tree.statement(backward.node)):
        if isinstance(level, ast.For):
            if any(visits(project, backward.module, level, str(name)) for name in names):
                return level
    return None


def cleared_by(stmt: ast.stmt) -> ast.expr | None:
    """Return `x` of a statement ``x.zero_grad()``; None for any other one."""
    call = called_alone(stmt)
    func = call.func if call is not None else None
    return func.value if isinstance(func, ast.Attribute) and func.attr == "zero_grad" else None


def boundary(step: Step, backward: ast.AST, others: Iterable[Step] = ()) -> Fork | None:
    """Return the outermost test around a step that a backward in the same loop or function does not share.

    One that steps the optimizer whichever way it goes is no boundary; `others` step it through helpers.
    """
    found: Fork | None = None
    for level in levels(step.tree, step.anchor):
        if level is step.anchor:
            continue
        if inside(step.tree, backward, level):
            return found
        if is_fork(level) and not _steps_either_way(step, level, others):
            found = level
        if isinstance(level, Loop):
            return None
    return found


def waits_by(step: Step, backward: ast.AST, others: Iterable[Step] = ()) -> Fork | None:
    """Return the boundary of a step, or the test behind a backward of its round that leaves the round before the step.

    `others` step the optimizer, too.
    """
    found = boundary(step, backward, others)
    if found is not None:
        return found
    for level in levels(step.tree, step.anchor):
        block = step.tree.block(level)
        for stmt in block[: position(step.tree, level)]:
            leaves = isinstance(stmt, ast.If) and isinstance(stmt.body[-1], ast.Continue)
            if leaves and isinstance(stmt, ast.If) and not stmt.orelse:
                if any(inside(step.tree, backward, s) for s in block[: position(step.tree, stmt)]):
                    return stmt
        if isinstance(parent_statement(step.tree, level), Loop):
            return None
    return None


def waiting(step: Step, limit: Fork) -> list[ast.stmt]:
    """Return what runs only where a test lets its step run: the branch that steps, or what follows a test that leaves the round."""
    tree = step.tree
    if not inside(tree, step.call, limit):
        return tree.block(limit)[position(tree, limit) + 1 :]
    yes, no = ways(limit)
    return yes if in_branch(tree, step.call, yes) else no


def asked(tree: Tree, limit: Fork) -> str:
    """Return what a test asks that a step waits by, turned round where it leaves the round before the step."""
    asks = question(limit)
    text = Condition(None, tree.segment(asks) if isinstance(limit, ast.If) else ast.unparse(asks))
    return negate(text).text if isinstance(ways(limit)[0][-1], ast.Continue) else text.text


def outermost_anchor(step: Step, others: Iterable[Step] = ()) -> ast.stmt:
    """Return the statement that steps whichever way its tests go; `others` step the optimizer through helpers."""
    found = step.anchor
    for level in levels(step.tree, step.anchor):
        if level is step.anchor:
            continue
        if not is_fork(level) or not _steps_either_way(step, level, others):
            break
        found = level
    return found


def _steps_either_way(step: Step, test: Fork, others: Iterable[Step]) -> bool:
    yes, no = ways(test)
    other = no if in_branch(step.tree, step.anchor, yes) else yes
    own = {
        node
        for stmt in other
        for node in ast.walk(stmt)
        if isinstance(node, ast.Attribute) and node.attr == "step"
        if same(node.value, step.optimizer)
    }
    steps = {*own, *(s.call for s in others)}
    return comes_to(other, lambda stmt: any(inside(step.tree, node, stmt) for node in steps))


def children_of(tree: Tree, anchors: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of the innermost block around all anchors that hold them, in order."""
    chains = [list(levels(tree, anchor)) for anchor in anchors]
    for candidate in chains[0]:
        block = tree.block(candidate)
        picks = [next((s for s in chain if tree.block(s) is block), None) for chain in chains]
        if all(picks):
            unique = {pick for pick in picks if pick is not None}
            return sorted(unique, key=lambda s: position(tree, s))
    return anchors


def parent_statement(tree: Tree, stmt: ast.stmt) -> ast.AST:
    """Return the statement (or scope) whose block holds a statement."""
    up = tree.holder(stmt)
    while isinstance(up, ast.ExceptHandler | ast.match_case):
        up = tree.parents[up]
    return up


def takes_gradients(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call takes gradients by ``torch.autograd.grad``."""
    return project.external(module, call.func) == _TORCH_GRAD


@once
def takes_any(project: Project) -> bool:
    """Tell whether any call of a project takes gradients so."""
    return any(takes_gradients(project, module, call) for module, call in project.nodes(ast.Call))


def runs_backward(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call is ``torch.autograd.backward``, which takes the loss as an argument."""
    return project.external(module, call.func) == _TORCH_BACKWARD


def differentiates(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call is one of the two."""
    return project.external(module, call.func) in (_TORCH_GRAD, _TORCH_BACKWARD)
