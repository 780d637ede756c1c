"""Whether the text shows what the contexts are that come into it: autocast, or nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side, differs, staying
from amp_migrate.check.events.traces import Difference
from amp_migrate.check.statements.alike import Alike
from amp_migrate.facts.below import every
from amp_migrate.facts.paths import tail
from amp_migrate.project import Function
from amp_migrate.training.beliefs import CASTS_AT_MOST
from amp_migrate.training.origins.meant import held

_UNTOLD = "is entered, and nothing in sight shows that it is autocast:"
_WITH = ast.With | ast.AsyncWith


def entered_unseen(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield the contexts that only the new text enters and that may be something else than autocast."""
    alike = Alike(old, new)
    for before, after, _ in staying(old, new, claims):
        had = [(f, context) for f in before for context in _contexts(f)]
        texts = {ast.unparse(n) for _, c in had for n in every(c) if isinstance(n, ast.expr)}
        kept = [(f, c) for f, c in had if isinstance(c, ast.Call) and not alike.is_apex(f, c)]
        for function in after:
            for context in _contexts(function):
                arms = (
                    [context.body, context.orelse] if isinstance(context, ast.IfExp) else [context]
                )
                if all(ast.unparse(a) in texts or _is_told(new, function, a) for a in arms):
                    continue
                told = tail(context) if isinstance(context, ast.Call) else None
                same = [(f, c) for f, c in kept if tail(c) == told]
                if not any(alike.reads(f, c, function, context) for f, c in same):
                    yield differs(function, context, f"`{ast.unparse(context)}` {_UNTOLD}")


def _contexts(function: Function) -> Iterator[ast.expr]:
    for node in function.own_nodes:
        if isinstance(node, _WITH):
            yield from (item.context_expr for item in node.items)


def _is_told(side: Side, function: Function, node: ast.expr) -> bool:
    """Tell whether a context is one that is known, whichever of several it is."""
    if isinstance(node, ast.IfExp):
        return all(_is_told(side, function, arm) for arm in (node.body, node.orelse))
    if isinstance(node, ast.Call):
        return side.project.external(function.module, node.func) in CASTS_AT_MOST
    found = [value for value in held(side.project, function.module, node) if value is not node]
    return bool(found) and all(
        isinstance(value, ast.Call)
        and side.project.external(side.project.module_of(value), value.func) in CASTS_AT_MOST
        for value in found
    )
