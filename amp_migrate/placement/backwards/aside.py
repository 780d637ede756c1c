"""Plain backward passes of a way that never steps, although AMP is on there: scaled, their gradients stay scaled."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from amp_migrate.availability.condition import Condition
from amp_migrate.facts.paths import walk
from amp_migrate.facts.tree import Tree
from amp_migrate.placement.steps.steps import Backward, Step
from amp_migrate.placement.windows.surviving import stay
from amp_migrate.scaler.creation import Creation
from amp_migrate.unit.cannot import Cannot
from amp_migrate.unit.order import Loop, in_branch, inside, levels
from amp_migrate.unit.unit import Unit

_LEAVES = (ast.Return, ast.Continue, ast.Break, ast.Raise)
_NOT_APEX = frozenset(sys.stdlib_module_names) | {"torch", "numpy"}
Fact = tuple[str, bool]


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
        if test is not None and not any(_follows(backward, step) for step in steps):
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
        if not _lasting(backward, level.test) and stay(unit, backward):
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
    return bool(deciding) and (not _options(test) or bool(deciding & _last_names(test)))


def _named(condition: Condition) -> set[str]:
    if condition.value is not None or not condition.text:
        return set()
    return _last_names(ast.parse(condition.text, mode="eval").body)


def _last_names(node: ast.expr) -> set[str]:
    """Return the variables, attributes and keys that an expression reads, by their last names."""
    parts = list(ast.walk(node))
    names = {n.id for n in parts if isinstance(n, ast.Name)}
    names |= {n.attr for n in parts if isinstance(n, ast.Attribute)}
    names |= {n.value for n in parts if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    roots = {
        n.value.id
        for n in parts
        if isinstance(n, ast.Attribute | ast.Subscript) and isinstance(n.value, ast.Name)
    }
    return names - roots


def _options(test: ast.expr) -> bool:
    """Tell whether a test reads nothing but settings, as ``args.frozen``, whose meaning no value of the program sets."""
    inner = test.operand if isinstance(test, ast.UnaryOp) else test
    return isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name)


def _lasting(backward: Backward, test: ast.expr) -> bool:
    """Tell whether a test says the same for as long as its function runs."""
    read = {ast.dump(n) for n in ast.walk(test) if isinstance(n, ast.Name | ast.Attribute)}
    names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    if any(isinstance(n, ast.Call) for n in ast.walk(test)):
        return False
    for node in walk(backward.function.scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names:
            if _loops(backward.module.tree, node) or backward.function.node is not None:
                return False
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if ast.dump(node).replace("Store()", "Load()") in read:
                return False
    return True


def _loops(tree: Tree, node: ast.AST) -> bool:
    return any(isinstance(level, Loop) for level in levels(tree, node))


def _follows(backward: Backward, step: Step) -> bool:
    """Tell whether a step may run on the way of a backward, which a test that holds on it may rule out."""
    tree = backward.module.tree
    block = tree.block(tree.statement(backward.node))
    if any(isinstance(stmt, _LEAVES) for stmt in block) and not in_branch(tree, step.call, block):
        return False
    known = dict(_facts(tree, backward.node))
    return not any(known.get(core) is (not holds) for core, holds in _facts(tree, step.call))


def _facts(tree: Tree, node: ast.AST) -> Iterator[Fact]:
    """Yield what holds where a node runs: tests by how they are written, and whether they are true."""
    for level in levels(tree, node):
        if isinstance(level, ast.If) and not inside(tree, node, level.test):
            yield from _parts(level.test, in_branch(tree, node, level.body))


def _parts(test: ast.expr, holds: bool) -> Iterator[Fact]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _parts(test.operand, not holds)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        for part in test.values:
            yield from _parts(part, holds)
    elif (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.Is | ast.IsNot)
        and ast.unparse(test.comparators[0]) == "None"
    ):
        yield ast.dump(test.left), holds is isinstance(test.ops[0], ast.IsNot)
    else:
        yield ast.dump(test), holds


def _cannot(backward: Backward, test: ast.If) -> Cannot:
    tree = backward.module.tree
    said = ast.unparse(test.test)
    way = f"`{said}` is {'true' if in_branch(tree, backward.node, test.body) else 'false'}"
    return Cannot(
        "AMP905",
        backward.module,
        backward.node,
        f"this backward runs where {way}, with AMP on and no optimizer step behind it: natively it would leave "
        "gradients that are 65536 times too large",
        f"initialize amp only where `{said}` lets the optimizer step, or migrate this training by hand and leave this "
        "backward unscaled",
    )
