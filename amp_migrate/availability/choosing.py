"""What decides whether a run of a program uses Apex: what follows from its being installed, and asks for it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.availability import Availability
from amp_migrate.availability.installed import imports_apex
from amp_migrate.facts.constants import is_true, string
from amp_migrate.facts.paths import path
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Module
from amp_migrate.project.order import inside

_APEX = "apex"
"""What a program that can do without Apex calls the choice of it."""


def may_be_off(site: Site) -> bool:
    """Tell whether a run may initialize without choosing Apex, as ``enabled=`` and a level from elsewhere let it."""
    given = {k.arg: k.value for k in site.call.keywords}
    enabled = given.get("enabled")
    if enabled is not None and not is_true(enabled):
        return True
    if isinstance(given.get("opt_level", ast.Constant("O1")), ast.Constant) and None not in given:
        return False
    return not (_APEX in site.function.name.lower() or chosen_by_name(site))


def chosen_by_name(site: Site) -> bool:
    """Tell whether a test around a site asks for Apex by its name: ``if backend == "apex"``."""
    tests = (up.test for up in site.module.tree.ancestors(site.node) if isinstance(up, ast.If))
    words = (
        word for test in tests for part in ast.walk(test) for word in (path(part), string(part))
    )
    return any(_APEX in word.lower() for word in words if word is not None)


def answers(availability: Availability, found: Iterable[Site]) -> Availability:
    """Return what is known in a file that loses its way through Apex's AMP; `found` are its uses of Apex.

    Calls that ask whether Apex is installed stay, unless other parts of it become torch's there.
    """
    others = any(site.kind is Kind.OTHER for site in found)
    return availability if others else availability.without_probes()


def announces(node: ast.Try) -> bool:
    """Tell whether a `try` imports Apex and then does more than set a flag, and goes on without it."""
    if not imports_apex(node.body) or node.orelse + node.finalbody:
        return False
    more = [s for s in node.body if not isinstance(s, ast.Import | ast.ImportFrom | ast.Assign)]
    passes = all(isinstance(s, ast.Pass) for h in node.handlers for s in h.body)
    return bool(more) and passes and all(isinstance(s, ast.Expr) for s in more)


def chooses(
    availability: Availability, module: Module, gone: set[ast.AST], raising: Iterable[ast.expr] = ()
) -> bool:
    """Tell whether something that stays, but an error and an import, follows from Apex being installed.

    What only sets a choice that ends in an error does not count: `raising` are the tests that lead there.
    """
    raising = list(raising)
    tree = module.tree
    for node in tree.nodes(ast.Name, ast.Call, ast.Compare):
        if node in gone or availability.known(node) is None:
            continue
        if isinstance(node, ast.Name) and not _is_read_whole(tree, node):
            continue
        stmt = tree.statement(node)
        if isinstance(stmt, ast.Assert):
            continue
        if not (isinstance(stmt, ast.If) and inside(tree, node, stmt.test) and not stmt.orelse):
            return True
        imports = all(isinstance(s, ast.Import | ast.ImportFrom) for s in stmt.body)
        if not (imports or only_sets(stmt.body, raising) or isinstance(stmt.body[-1], ast.Raise)):
            return True
    return False


def only_sets(body: Iterable[ast.stmt], tests: Iterable[ast.expr]) -> bool:
    """Tell whether statements do nothing but give variables of some tests a value that these ask for."""
    asked = [n for test in tests for n in ast.walk(test)]
    chosen = {path(n) for n in asked} - {None}
    values: set[object] = {True, *(n.value for n in asked if isinstance(n, ast.Constant))}
    return all(_sets(stmt, chosen, values) for stmt in body)


def _sets(stmt: ast.stmt, chosen: set[str | None], values: set[object]) -> bool:
    """Tell whether a statement does nothing but give some of the variables one of the values."""
    if not isinstance(stmt, ast.Assign) or not isinstance(stmt.value, ast.Constant):
        return False
    if stmt.value.value not in values:
        return False
    return all(path(target) in chosen for target in stmt.targets)


def _is_read_whole(tree: Tree, node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load) and not isinstance(tree.parents[node], ast.Attribute)
