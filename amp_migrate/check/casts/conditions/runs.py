"""Conditions as one function spells them, and the runs in which their flags come out in each way."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from amp_migrate.check.apex.assumed import guards
from amp_migrate.facts.below import atoms
from amp_migrate.facts.paths import variables
from amp_migrate.facts.scopes import assigned
from amp_migrate.facts.variables import put_in
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.project import Function
from amp_migrate.project.order import levels


def tests_around(function: Function, call: ast.Call) -> Iterator[ast.expr]:
    """Yield the tests around a call as they hold there."""
    for test, truth in guards(function, call):
        yield test if truth else ast.UnaryOp(ast.Not(), test)


def any_of(conditions: Iterable[ast.expr]) -> ast.expr:
    """Return a condition that holds where one of some does."""
    return ast.BoolOp(ast.Or(), [ast.Constant(False), *conditions])


def spelt(function: Function, node: ast.expr) -> ast.expr:
    """Return a condition with what its variables are bound to, where that is once and no call."""
    scopes, tree = function.module.scopes, function.module.tree
    values: dict[str, ast.expr] = {}
    for name in variables(node):
        bound = scopes.bindings(function.scope, name)
        value = assigned(tree, bound[0]) if len(bound) == 1 else None
        if value is not None and not any(isinstance(n, ast.Call) for n in ast.walk(value)):
            values[name] = value
    return put_in(node, values) if values else node


def may_leave(function: Function, call: ast.Call) -> bool:
    """Tell whether a test in front of a call may leave its function or loop."""
    tree = function.module.tree
    for level in levels(tree, call):
        block = tree.block(level)
        for statement in block[: block.index(level)]:
            if isinstance(statement, ast.If) and any(
                isinstance(n, ast.Return | ast.Continue | ast.Break | ast.Raise)
                for n in ast.walk(statement)
            ):
                return True
    return False


def flags_of(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the flags that a condition is made of."""
    for part in atoms(node):
        if isinstance(part, ast.IfExp):
            for side in (part.test, part.body, part.orelse):
                yield from flags_of(side)
        elif not isinstance(part, ast.Constant):
            yield part


def runs(known: Assumption, flags: Sequence[ast.expr]) -> Iterator[Assumption]:
    """Yield what may be known of some flags, for each way of them to come out."""
    for truths in product((True, False), repeat=len(flags)):
        held: Assumption | None = known
        for flag, truth in zip(flags, truths, strict=True):
            if held is not None and evaluate(flag, held) is not (not truth):
                held = refine(held, flag, truth)
            else:
                held = None
        if held is not None:
            yield held
