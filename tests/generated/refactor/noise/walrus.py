"""An assignment goes into the expression that uses it next."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from random import Random

from generated.refactor.noise.spots import Spot, drawn, with_lines
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


def _walrus(project: Project, rng: Random) -> Project | None:
    """`x = f()` above a statement that reads x first of all becomes `(x := f())` in it."""
    for spot in drawn(project, rng):
        place = _place(spot)
        if place is None:
            continue
        assign = spot.statement
        assert isinstance(assign, ast.Assign) and isinstance(assign.targets[0], ast.Name)
        start, stop = spot.held.span(place)
        value = spot.held.source(assign.value)
        if not _again(spot, assign.targets[0].id, place):
            continue
        if "#" in spot.held.text[spot.held.span(assign)[1] : spot.end] or "\n" in value:
            continue
        new = f"{assign.targets[0].id} := {value}"
        if not (spot.held.text[start - 1] == "(" and spot.held.text[stop] == ")"):
            new = f"({new})"
        line = spot.held.lines[assign.lineno - 1]
        return with_lines(project, spot, [(line, spot.end, ""), (start, stop, new)])
    return None


def _again(spot: Spot, name: str, place: ast.Name) -> bool:
    """Tell whether something else reads the name: otherwise the value would need none."""
    scope = next((s for s in spot.held.scopes if s.node is spot.function), None)
    return any(
        p.name == name and p.node is not place and p.scope.home(name) is scope and _loads(p.node)
        for p in spot.held.places
    )


def _loads(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def _place(spot: Spot) -> ast.Name | None:
    """Return where the next statement reads what a statement assigns, before anything else happens."""
    assign = spot.statement
    if not (
        isinstance(assign, ast.Assign)
        and len(assign.targets) == 1
        and spot.index + 1 < len(spot.body)
    ):
        return None
    target, after = assign.targets[0], spot.body[spot.index + 1]
    if not isinstance(target, ast.Name) or isinstance(
        assign.value, ast.Tuple | ast.Yield | ast.Await
    ):
        return None
    first: ast.AST | None = None
    if isinstance(after, ast.If):
        first = after.test
    elif isinstance(after, ast.Expr | ast.Return) or (
        isinstance(after, ast.Assign) and all(isinstance(t, ast.Name) for t in after.targets)
    ):
        first = after.value
    elif isinstance(after, ast.With):
        first = after.items[0].context_expr
    elif isinstance(after, ast.For):
        first = after.iter
    if first is None:
        return None
    for node in _order(first):
        if isinstance(node, ast.Name) and node.id == target.id:
            return node
        if not isinstance(node, ast.Name | ast.Attribute | ast.Constant):
            return None
    return None


def _order(node: ast.AST) -> Iterator[ast.AST]:
    """Yield expressions in the order in which they are evaluated, until the order depends on values."""
    inner = (
        ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.JoinedStr
    )
    if isinstance(node, ast.BoolOp):
        yield from _order(node.values[0])
    elif isinstance(node, ast.IfExp):
        yield from _order(node.test)
    elif not isinstance(node, inner | ast.Dict):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr | ast.keyword):
                yield from _order(child)
    if isinstance(node, ast.expr):
        yield node


REFACTORINGS = (Refactoring("an assignment goes into the next expression", "noise", _walrus),)
