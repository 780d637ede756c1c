"""Loops and branches of which nothing is left: whether a loop still does something, and when what follows a branch runs."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import acts, path
from amp_migrate.facts.tree import Tree
from amp_migrate.flow.assumption import NOTHING
from amp_migrate.flow.condition import Condition, conjunction, negate
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.plan.model import DropBlock, Edit, ReplaceExpression
from amp_migrate.source.span import Span

_VIEWS = frozenset({"items", "keys", "values"})
_THROUGH = frozenset({"enumerate", "reversed", "zip"})
_COLLECTIONS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)


def does_nothing(tree: Tree, loop: ast.For) -> bool:
    """Tell whether an empty loop uses nothing up, and nothing reads what it binds."""
    names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    plain = all(isinstance(n, ast.Name | ast.Tuple | ast.Store) for n in ast.walk(loop.target))
    return (
        plain
        and not loop.orelse
        and _is_reiterable(tree, loop, loop.iter)
        and not _is_read(tree, loop, names)
    )


def _is_reiterable(tree: Tree, loop: ast.For, node: ast.expr) -> bool:
    """Tell whether going through something leaves it as it is: it counts, or it is a collection and no iterator."""
    if not isinstance(node, ast.Call):
        return _is_collection(tree, node) or _is_indexed(loop, node)
    if node.keywords:
        return False
    name = path(node.func) or ""
    if name == "range":
        return all(_is_number(given) for given in node.args)
    if name in _THROUGH:
        return all(_is_reiterable(tree, loop, given) for given in node.args)
    return name.rpartition(".")[2] in _VIEWS and "." in name and not node.args


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return path(node.func) == "len" and all(path(given) is not None for given in node.args)
    return isinstance(node, ast.Constant) or path(node) is not None


def _is_collection(tree: Tree, node: ast.expr) -> bool:
    """Tell whether a display stands for an expression, or a name is bound to nothing else."""
    if isinstance(node, _COLLECTIONS):
        return True
    if not isinstance(node, ast.Name):
        return False
    scope = tree.scope(node)
    bound = [n for n in ast.walk(scope) if _binds(n, node.id)]
    values = [tree.parent(n) for n in bound]
    return bool(values) and all(
        isinstance(up, ast.Assign) and isinstance(up.value, _COLLECTIONS) for up in values
    )


def _is_indexed(loop: ast.For, node: ast.expr) -> bool:
    """Tell whether a loop takes items by key of what it goes through: ``for name in nets: nets[name] = ...``."""
    text = path(node)
    parts = [part for stmt in loop.body for part in ast.walk(stmt)]
    taken = any(isinstance(part, ast.Subscript) and path(part.value) == text for part in parts)
    return text is not None and taken and not any(_binds(part, text) for part in parts)


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.arg):
        return node.arg == name
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def _is_read(tree: Tree, loop: ast.For, names: set[str]) -> bool:
    """Tell whether something reads a name that a loop binds, outside of it and of other loops that bind it."""
    own = set(ast.walk(loop))
    for node in ast.walk(tree.scope(loop)):
        if isinstance(node, ast.Name) and node.id in names and node not in own:
            if isinstance(node.ctx, ast.Load) and not _is_bound_around(tree, node):
                return True
    return False


def _is_bound_around(tree: Tree, name: ast.Name) -> bool:
    """Tell whether a loop or a comprehension around a name binds it."""
    for up in tree.ancestors(name):
        targets = [up.target] if isinstance(up, ast.For) else []
        targets += [part.target for part in getattr(up, "generators", [])]
        if any(_binds(n, name.id) for target in targets for n in ast.walk(target)):
            return True
    return False


def folded(tree: Tree, stmt: ast.If, edited: list[Span]) -> list[Edit]:
    """Return the edits that let what follows an emptied branch say by itself when it runs; none where that has no plain form.

    Where more follows than one ``elif``, each must exclude what the branch asked, and nothing may stand in an ``else``.
    """
    chain, rest = [stmt], stmt.orelse
    while len(rest) == 1 and isinstance(rest[0], ast.If) and tree.is_elif(rest[0]):
        chain.append(rest[0])
        rest = rest[0].orelse
    if any(tree.span(test.test).contains(at) for test in chain[:2] for at in edited):
        return []
    drop = DropBlock(tree.span(stmt), "body")
    before = negate(Condition(None, tree.segment(stmt.test)))
    if len(chain) == 1:
        return [drop, ReplaceExpression(tree.span(stmt.test), before.text)]
    if all(_excludes(later.test, stmt.test) for later in chain[1:]):
        return [] if rest else [drop]
    if len(chain) > 2 or rest:
        return []
    later = Condition(None, tree.segment(chain[1].test))
    text = conjunction([before, later]).text
    return [drop, ReplaceExpression(tree.span(chain[1].test), text)]


def _excludes(test: ast.expr, other: ast.expr) -> bool:
    """Tell whether a test cannot hold together with another one, which does nothing but ask."""
    known = refine(NOTHING, test, True)
    return not acts(other, ast.Call) and (known is None or evaluate(other, known) is False)
