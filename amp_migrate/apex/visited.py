"""Loops over all loss scalers of Apex: ``for scaler in amp._amp_state.loss_scalers``."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from amp_migrate.apex.sites import Site, private
from amp_migrate.facts.tree import Tree

_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


@dataclass(frozen=True, eq=False, slots=True)
class Visit:
    """What a loop asks each loss scaler for: the expressions that read its scale, and whether it overflowed."""

    scales: tuple[ast.expr, ...]
    overflows: tuple[ast.expr, ...]


def visit(site: Site) -> Visit | None:
    """Return the loop that a use of Apex's private state is for; None for any other use."""
    if private(site) != ("loss_scalers",):
        return None
    tree = site.module.tree
    iterable = _iterable(tree, site.node)
    holder = tree.parent(iterable)
    if isinstance(holder, ast.comprehension) and holder.iter is iterable:
        region = tree.parent(holder)
        inside: list[ast.AST] = [region] if isinstance(region, _COMPREHENSIONS) else []
        everywhere = region
    elif isinstance(holder, ast.For) and holder.iter is iterable:
        inside = list(holder.body)
        everywhere = tree.scope(holder)
    else:
        return None
    variable = _variable(holder.target, enumerated=iterable is not site.node)
    if variable is None or everywhere is None:
        return None
    return _reads(tree, variable, inside, everywhere)


def _iterable(tree: Tree, node: ast.AST) -> ast.AST:
    """Return ``enumerate(node)`` where that is around a node, else the node."""
    up = tree.parent(node)
    counted = (
        isinstance(up, ast.Call) and isinstance(up.func, ast.Name) and up.func.id == "enumerate"
    )
    return up if counted and isinstance(up, ast.Call) and up.args[:1] == [node] else node


def _variable(target: ast.expr, enumerated: bool) -> ast.Name | None:
    if enumerated:
        pair = isinstance(target, ast.Tuple | ast.List) and len(target.elts) == 2
        target = target.elts[1] if pair and isinstance(target, ast.Tuple | ast.List) else target
        if not pair:
            return None
    return target if isinstance(target, ast.Name) else None


def _reads(
    tree: Tree, variable: ast.Name, inside: list[ast.AST], everywhere: ast.AST
) -> Visit | None:
    """Return what is read of a variable; None where anything else is done with it, or behind the loop."""
    scales: list[ast.expr] = []
    overflows: list[ast.expr] = []
    known = {n for part in inside for n in ast.walk(part)}
    for node in ast.walk(everywhere):
        if not isinstance(node, ast.Name) or node.id != variable.id or node is variable:
            continue
        asked = tree.parent(node)
        if node not in known or not isinstance(asked, ast.Attribute):
            return None
        call = tree.call_of(asked)
        called = call is not None and not call.args and not call.keywords
        if not isinstance(asked.ctx, ast.Load) or (call is not None and not called):
            return None
        if asked.attr == "_has_overflow" and not called:
            overflows.append(asked)
        elif asked.attr == "_loss_scale" and not called:
            scales.append(asked)
        elif asked.attr == "loss_scale" and call is not None:
            scales.append(call)
        else:
            return None
    return Visit(tuple(scales), tuple(overflows)) if scales or overflows else None
