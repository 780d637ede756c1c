"""Plain backward passes of a way that never steps, although AMP is on there: scaled, their gradients stay scaled."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable
from functools import partial

from amp_migrate.facts.paths import last_names, variables, walk
from amp_migrate.flow import Point, leads
from amp_migrate.flow.condition import Condition
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.creation import Creation
from amp_migrate.placement.windows.surviving import stay
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project.order import in_branch, levels
from amp_migrate.project.rounds import graph_of, points_of, steadily
from amp_migrate.training.steps import Backward, Step

_NOT_APEX = frozenset(sys.stdlib_module_names) | {"torch", "numpy"}


def refuse_aside(unit: Unit, creations: list[Creation]) -> None:
    """Refuse a plain backward under a test that is not that of Apex, where no step of its function follows.

    Under Apex it gave true gradients to whatever reads them. A test of Apex is no obstacle: where it fails, the
    scaler is off. Neither is one that may change while the function runs, where its gradients wait for a later round.
    """
    if not creations or all(c.casts.value is False for c in creations):
        return
    for backward in unit.backwards:
        if backward.scaled:
            continue
        own = unit.backwards_of(backward.function)
        steps = unit.steps_of(backward.function)
        if not steps or not any(b.scaled for b in own):
            continue
        test = _deciding(unit, backward, [s for s in own if s.scaled], creations)
        if test is not None and not any(_follows(unit, backward, step) for step in steps):
            raise _cannot(backward, test)


def _deciding(
    unit: Unit, backward: Backward, scaled: list[Backward], creations: list[Creation]
) -> ast.If | None:
    """Return the test that chooses between a plain backward and a scaled one; None where it asks for Apex."""
    tree = backward.module.tree
    found: ast.If | None = None
    for level in levels(tree, backward.node):
        if not isinstance(level, ast.If) or not _holds(level, backward.node):
            continue
        other = level.orelse if in_branch(tree, backward.node, level.body) else level.body
        if _asks(unit, backward, level.test, creations):
            return None
        if not _lasting(unit, backward, level.test, other) and stay(unit, backward):
            return None
        if found is None and any(in_branch(tree, s.node, other) for s in scaled):
            found = level
    return found


def _holds(test: ast.If, node: ast.AST) -> bool:
    return not any(node is part for part in ast.walk(test.test))


def _asks(unit: Unit, backward: Backward, test: ast.expr, creations: list[Creation]) -> bool:
    """Tell whether a test may be about AMP: it says nothing else, or names what decides about an initialize."""
    availability = unit.availability[backward.module]
    if availability.reduce(test).value is not None or unit.switches:
        return True
    if any(c.sometimes or c.instead for c in creations):
        return True
    module = backward.module
    names = (n for n in ast.walk(test) if isinstance(n, ast.Name))
    outside = (unit.project.external(module, n) or "" for n in names)
    if any(name and name.partition(".")[0] not in _NOT_APEX for name in outside):
        return True
    deciding = {name for c in creations for name in _named(c.casts)}
    return bool(deciding) and (not _options(test) or bool(deciding & last_names(test)))


def _named(condition: Condition) -> set[str]:
    if condition.value is not None or not condition.text:
        return set()
    return last_names(ast.parse(condition.text, mode="eval").body)


def _options(test: ast.expr) -> bool:
    """Tell whether a test reads nothing but settings, as ``args.frozen``, whose meaning no value of the program sets."""
    inner = test.operand if isinstance(test, ast.UnaryOp) else test
    return isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name)


def _lasting(unit: Unit, backward: Backward, test: ast.expr, other: list[ast.stmt]) -> bool:
    """Tell whether a test that a backward ran under says the same from then on, whoever calls its function again."""
    names = variables(test)
    stored = {
        node.id
        for node in walk(backward.function.scope if backward.function.node is not None else test)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return not names & stored and not _leads(unit, backward, other[:1])


def _leads(
    unit: Unit, backward: Backward, nodes: Iterable[ast.AST], avoiding: Collection[Point] = ()
) -> bool:
    """Tell whether a node may follow a backward, where a test comes out the same until its function writes what it reads."""
    points = partial(points_of, unit.project, backward.function)
    goals = [point for node in nodes for point in points(node)[:1]]
    ways = steadily(unit.project, backward.function)
    return leads(ways, points(backward.node)[-1:], goals, avoiding)


def _follows(unit: Unit, backward: Backward, step: Step) -> bool:
    """Tell whether a step may run on the way of a backward, before the loops around it start anew."""
    order = graph_of(unit.project, backward.function).order(exceptions=False)
    start = points_of(unit.project, backward.function, backward.node)[-1]
    return _leads(unit, backward, [step.call], [loop.header for loop in order.loops_of(start)])


def _cannot(backward: Backward, test: ast.If) -> Cannot:
    tree = backward.module.tree
    said = ast.unparse(test.test)
    way = f"`{said}` is {'true' if in_branch(tree, backward.node, test.body) else 'false'}"
    return Cannot(
        "AMP905",
        *backward.at,
        f"this backward runs where {way}, with AMP on and no optimizer step behind it: natively it would leave "
        "gradients that are 65536 times too large",
        f"initialize amp only where `{said}` lets the optimizer step, or migrate this training by hand and leave this "
        "backward unscaled",
    )
