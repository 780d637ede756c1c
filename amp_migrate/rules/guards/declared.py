"""Names that a function declares `global` or `nonlocal` only to assign what `amp.initialize` gave."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.below import behind_docstring
from amp_migrate.facts.paths import bound_name
from amp_migrate.plan.model import Drop, Edit, Insert, Replace
from amp_migrate.project import Function
from amp_migrate.rules.base import Context


def undeclared(context: Context, site: Site, rest: Callable[[Site], str]) -> Iterator[Edit]:
    """Yield the edits that take names out of declarations where nothing assigns them any more.

    A name that only functions inside assign from then on is bound before them, as their `nonlocal` asks for. `rest` gives what is left of the statement of an initialize. The last initialize of a function answers for all.
    """
    function = site.function
    own = [s for s in context.unit.of(Kind.INITIALIZE) if s.function is function]
    if site is not own[-1] or function.node is None:
        return
    going = {s.statement for s in own}
    gone = {n for stmt in going for n in ast.walk(stmt)} | context.unit.gone
    kept = {bound_name(node) for node in function.own_nodes if node not in gone}
    for other in own:
        if not context.is_gone(other.node):
            kept |= set(map(bound_name, ast.walk(ast.parse(_alone(rest(other))))))
    bound = {bound_name(n) for stmt in going for n in ast.walk(stmt)}
    lost = {name for name in bound if name is not None} - kept
    tree = function.module.tree
    for node in function.own_nodes:
        if isinstance(node, ast.Global | ast.Nonlocal) and lost & set(node.names):
            names = [name for name in node.names if name not in lost]
            word = "global" if isinstance(node, ast.Global) else "nonlocal"
            span = tree.span(node)
            yield Replace(span, f"{word} {', '.join(names)}") if names else Drop(span)
            lost -= set(node.names)
    yield from _bound(function, lost - set(function.parameters.names))


def _bound(function: Function, lost: set[str]) -> Iterator[Edit]:
    """Yield the edit that binds the names that functions inside take from this one, where nothing else does."""
    asked = [
        (node, {*node.names} & lost)
        for node in function.all_nodes
        if isinstance(node, ast.Nonlocal) and {*node.names} & lost
    ]
    if not asked or function.node is None:
        return
    tree = function.module.tree
    inside = {up for node, _ in asked for up in tree.ancestors(node)}
    names = sorted({name for _, some in asked for name in some})
    first = next(stmt for stmt in behind_docstring(function.node) if stmt in inside)
    yield Insert(tree.span(first), f"{' = '.join(names)} = None", after=False)


def _alone(text: str) -> str:
    return "" if text.startswith("return") else text
