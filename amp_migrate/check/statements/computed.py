"""Whether what computes a loss is still there: a statement of it that goes leaves another loss."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.initialized import initialized
from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side, differs, staying
from amp_migrate.check.events.traces import Difference
from amp_migrate.check.gradients.scaled import backwards
from amp_migrate.facts.paths import called_on
from amp_migrate.facts.scopes import targets_of
from amp_migrate.flow.cfg.points import Kind
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place
from amp_migrate.training.contexts import scaling_calls

_Set = ast.Assign | ast.AugAssign | ast.AnnAssign
_SETS = ast.Assign, ast.AugAssign, ast.AnnAssign
_GONE = "computed the loss of a backward, and is gone:"


def computed(
    old: Side, new: Side, every: Sequence[Initialize], claims: Claims
) -> Iterator[tuple[Key, Difference]]:
    """Yield the statements that computed a loss of the old text, where the new one has nothing in their place.

    One that gives the network back as Apex made it does nothing else.
    """
    apex = initialized(old.program, {item.call for item in every})
    for before, after, introduced in staying(old, new, claims):
        kept = {ast.unparse(n) for f in after for n in f.own_nodes if isinstance(n, _SETS)}
        labels = {label for f in after for _, label, _ in backwards(new, f, introduced)}
        for function in before:
            had = {ast.unparse(n) for n in function.own_nodes if isinstance(n, _SETS)}
            for call, label, _ in backwards(old, function):
                for stmt in _behind(old, function, call) if label in labels else ():
                    place = Place(function.module.path, stmt.lineno)
                    stays = ast.unparse(stmt) in kept or _is_written_anew(stmt, kept - had)
                    calls = (n for n in ast.walk(stmt) if isinstance(n, ast.Call))
                    if (
                        not stays
                        and not any(map(apex.initializes, calls))
                        and not claims.speak_of(place)
                    ):
                        what = f"`{ast.unparse(stmt)}` {_GONE}"
                        yield differs(function, stmt, what, gone=True)


def _is_written_anew(stmt: ast.stmt, fresh: set[str]) -> bool:
    """Tell whether another statement of the new text sets what one of the old text did."""
    targets = _set_by(stmt)
    return any(targets & _set_by(ast.parse(text).body[0]) for text in fresh)


def _set_by(stmt: ast.stmt) -> set[str]:
    set_by = [stmt.target] if isinstance(stmt, ast.AugAssign) else targets_of(stmt)
    return {ast.unparse(target) for target in set_by}


def _behind(side: Side, function: Function, backward: ast.Call) -> Iterator[_Set]:
    """Yield the statements of a function that set the loss of a backward, one after the other."""
    graph, tree = side.program.graph(function), function.module.tree
    names = {n.id for n in (called_on(backward), *backward.args) if isinstance(n, ast.Name)}
    starts: list[ast.AST] = [backward]
    seen: set[ast.AST] = set(starts)
    for node in starts:
        read = [item.context_expr for item in node.items] if isinstance(node, ast.With) else [node]
        if isinstance(node, ast.With):
            names |= {n.id for one in read for n in _first(one) if isinstance(n, ast.Name)}
        for name in (n for one in read for n in ast.walk(one) if isinstance(n, ast.Name)):
            if name.id not in names:
                continue
            for point in (p for p in graph.bound_before(name) if p.kind is Kind.STORE):
                stmt = tree.statement(point.node)
                if stmt not in seen:
                    seen.add(stmt)
                    starts.append(stmt)
                    if isinstance(stmt, _SETS) and not _scales(side, stmt):
                        yield stmt


def _scales(side: Side, stmt: ast.stmt) -> bool:
    scaling = scaling_calls(side.project)
    return any(isinstance(n, ast.Call) and n in scaling for n in ast.walk(stmt))


def _first(node: ast.AST) -> list[ast.expr]:
    return node.args[:1] if isinstance(node, ast.Call) else []
