"""What a function does and asks, part by part, and what those of two texts are told by."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from amp_migrate.check.events.labels import called
from amp_migrate.check.statements.words import NAMES, word
from amp_migrate.facts.below import every
from amp_migrate.facts.paths import tail
from amp_migrate.facts.scopes import targets_of
from amp_migrate.project import Function
from amp_migrate.source.mentions import LOGS, TEXTS

Set = ast.Assign | ast.AugAssign | ast.AnnAssign
STATEMENTS = ast.Expr | Set | ast.Return
BRANCHES = ast.If | ast.While
_LOOPS = ast.For | ast.AsyncFor
_WITH = ast.With | ast.AsyncWith
Part = ast.stmt | ast.expr
Held = list[tuple[Function, Part]]


def decorators(function: Function) -> list[ast.expr]:
    """Return what stands above a function."""
    return getattr(function.node, "decorator_list", [])


def tells(function: Function, part: Part) -> bool:
    """Tell whether a statement does no more than print or log texts that it makes."""
    if not isinstance(part, ast.Expr) or not isinstance(part.value, ast.Call):
        return False
    builtin = function.module.scopes.builtin
    makes = [n for n in ast.walk(part.value) if isinstance(n, ast.Call) and n is not part.value]
    prints = builtin(part.value.func) == "print" or tail(part.value) in LOGS
    return prints and all(
        builtin(n.func) in TEXTS or isinstance(getattr(n.func, "value", None), ast.Constant)
        for n in makes
    )


def parts(function: Function) -> Iterator[Part]:
    """Yield what a function does and asks, but for what it says of itself."""
    for node in function.own_nodes:
        if isinstance(node, STATEMENTS):
            value = node.value if isinstance(node, ast.Expr) else None
            if not isinstance(value, ast.Constant):
                yield node
        elif isinstance(node, BRANCHES):
            yield from asked(node.test, True)
        elif isinstance(node, _WITH):
            yield from (item.context_expr for item in node.items)
        elif isinstance(node, _LOOPS):
            yield node.iter


def asked(test: ast.expr, truth: bool) -> Iterator[ast.expr]:
    """Yield what a test says, each part of it by itself."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from asked(test.operand, not truth)
    elif isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from asked(part, truth)
    else:
        yield test if truth else ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def anchor(part: Part) -> tuple[str, str]:
    """Return what a part of a function is told by: what it sets or calls, or what it asks for."""
    if isinstance(part, Set):
        targets = [part.target] if isinstance(part, ast.AugAssign) else targets_of(part)
        return "=", " ".join(sorted(ast.unparse(t) for t in targets))
    if isinstance(part, ast.Expr):
        return "call", called(part.value.func) if isinstance(part.value, ast.Call) else ""
    if isinstance(part, ast.Return):
        return "return", ""
    return "asks", " ".join(sorted(word(n) for n in every(part) if isinstance(n, NAMES)))


def without(held: Held, others: Held) -> Held:
    """Return parts that others do not have as often, those last in the text."""
    left = Counter(ast.unparse(part) for _, part in others)
    found: Held = []
    for function, part in held:
        text = ast.unparse(part)
        left[text] -= 1
        if left[text] < 0:
            found.append((function, part))
    return found
