"""Steps of optimizers that may have no gradient, which a GradScaler refuses and Apex let pass."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from functools import partial

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.paths import path, tail
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function
from amp_migrate.project.order import inside
from amp_migrate.project.reach import calls_to, reachable
from amp_migrate.project.rounds import runs_before
from amp_migrate.training.origins.meant import are_several as hold_several
from amp_migrate.training.origins.meant import meant
from amp_migrate.training.origins.switches import entered
from amp_migrate.training.steps import Backward, Step, holds_backward, is_one


def skipped_backward(unit: Unit, step: Step, backwards: list[Backward]) -> ast.If | None:
    """Return a test that may leave out every backward before a step, but not the step."""
    running = {backward.function for backward in unit.backwards}
    calls = calls_to(unit.project, step.function, running)
    runs = partial(runs_before, unit.project, step.function)
    earlier = [n for n in (*(b.node for b in backwards), *calls) if runs(n, step.call)]
    known = entered(unit.project, step.function)
    for up, holds in step.tree.sides(step.call):
        if isinstance(up, ast.If):
            known = refine(known, up.test, holds) or known
    tests = [
        _skips(step.function, node, known, step.call)
        or _skipped_in(unit, node, known, {step.function})
        for node in earlier
    ]
    return tests[0] if tests and all(tests) else None


def _skips(
    function: Function, node: ast.AST, known: Assumption, step: ast.AST | None = None
) -> ast.If | None:
    """Return a test of a function that may leave out a node, but not the step."""
    tree = function.module.tree
    for up, holds in tree.sides(node):
        if step is not None and inside(tree, step, up):
            return None
        if isinstance(up, ast.If) and evaluate(up.test, known) is not holds:
            other = up.orelse if holds else up.body
            if not any(holds_backward(stmt) or _leaves(stmt) for stmt in other):
                return up
    return None


def _skipped_in(
    unit: Unit, node: ast.AST, known: Assumption, seen: Collection[Function]
) -> ast.If | None:
    """Return a test by which what a call runs may leave out every backward, by what this call gives."""
    found: list[ast.If | None] = []
    if not isinstance(node, ast.Call):
        return None
    for callee in (c for c in unit.project.callees(node) if c not in seen):
        own = entered(unit.project, callee)
        given = {**callee.parameters.defaults, **unit.project.given(node, callee)}
        for name, value in given.items():
            truth = evaluate(value, known)
            if truth is not None:
                own = refine(own, ast.Name(name, ast.Load()), truth) or own
        inner = calls_to(unit.project, callee, {b.function for b in unit.backwards})
        for part in (*(b.node for b in unit.backwards_of(callee)), *inner):
            skips = _skips(callee, part, own)
            found.append(skips or _skipped_in(unit, part, own, {*seen, callee}))
    return found[0] if found and all(found) else None


def _leaves(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Continue | ast.Break | ast.Return | ast.Raise)


def never_updates(unit: Unit, site: Site) -> bool:
    """Tell whether a script that initializes scales losses, as of attacks that only read gradients, but steps nothing."""
    if site.function.node is not None:
        return False
    runs = reachable(unit.project, site.function)
    scales = any(block.function in runs for block in unit.of(Kind.SCALE_LOSS))
    return scales and not any(step.function in runs for step in unit.steps)


def frozen_at_times(unit: Unit, steps: list[Step]) -> Iterator[ast.Call]:
    """Yield what turns gradients on and off at run time where the steps of a function are of several optimizers."""
    first = steps[0]
    if all(is_one(unit.project, s.module, s.optimizer, first.optimizer) for s in steps):
        return
    for node in first.function.calls:
        if node.args:
            if tail(node) == "set_grad_enabled" and not isinstance(node.args[0], ast.Constant):
                yield node


def never_unscaled(unit: Unit, blocks: Iterable[ScaleLoss]) -> Iterator[Step]:
    """Yield the steps of optimizers kept in an attribute that no `scale_loss` names: Apex left their gradients scaled."""
    blocks = list(blocks)
    if any(len(b.optimizer_list()) == 1 and are_several(unit, b) for b in blocks):
        return  # a list of optimizers, which is none of their names
    given = [(block.site.module, node) for block in blocks for node in block.optimizer_list()]
    values = unit.project.values
    if not given or not all(values.is_optimizer(module, node) for module, node in given):
        return
    named = {group for module, node in given for group in values.groups(module, node)}
    for step in unit.steps:
        if isinstance(step.optimizer, ast.Attribute) and values.is_optimizer(
            step.module, step.optimizer
        ):
            if not values.groups(step.module, step.optimizer) & named:
                yield step


def unnamed_in_turn(unit: Unit, blocks: Iterable[ScaleLoss]) -> Iterator[tuple[Step, ast.expr]]:
    """Yield the steps of loops over optimizers with those that no `scale_loss` names, where all name others of them."""
    blocks = list(blocks)
    named = {path(node) for block in blocks for node in block.optimizer_list()}
    for step in unit.steps:
        gone_over = _gone_over(step)
        names = {path(node) for node in gone_over}
        if named and named <= names - {None} and None not in names:
            if all(block.site.function is step.function for block in blocks):
                yield from ((step, node) for node in gone_over if path(node) not in named)


def _gone_over(step: Step) -> list[ast.expr]:
    """Return the items of the display that the loop goes over whose variable is stepped."""
    if not isinstance(step.optimizer, ast.Name):
        return []
    bound = set(step.module.scopes.bound(step.optimizer))
    for up in step.tree.ancestors(step.call):
        if isinstance(up, ast.For) and up.target in bound:
            return up.iter.elts if isinstance(up.iter, ast.List | ast.Tuple) else []
    return []


def are_several(unit: Unit, block: ScaleLoss) -> bool:
    """Tell whether a scale_loss is given several optimizers, or none of those that step one by one."""
    given = block.optimizer_list()
    if len(given) != 1:
        return len(given) > 1
    module = block.site.module
    if hold_several(unit.project, module, given[0]):
        return True
    if None not in meant(unit.project, module, given[0]):
        return False
    values = unit.project.values
    stepped = {values.groups(step.module, step.optimizer) for step in unit.steps}
    groups = values.groups(module, given[0])
    return len(stepped) > 1 and not any(groups & one for one in stepped)
