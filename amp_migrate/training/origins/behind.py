"""What assignments put behind a wrapper of torch, and whether ``x.module`` is there: not in runs that leave it without one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial

from amp_migrate.facts.paths import outward, path
from amp_migrate.facts.scopes import targets_of
from amp_migrate.project import Module, Project
from amp_migrate.project.once import kept
from amp_migrate.values.wrappers import wrapped

_Variable = tuple[str | None, ast.AST | None]
_Assigned = tuple[ast.Assign | ast.AnnAssign, bool]


def may_be_bare(
    project: Project, module: Module, node: ast.expr, at: ast.AST | None = None
) -> bool:
    """Tell whether an expression goes through the ``module`` of what only some branches wrap, read `at` a node outside of them.

    Without `at` it is read outside of all branches.
    """
    known = set(_tests(module, at)) if at is not None else set()
    return any(
        isinstance(part, ast.Attribute)
        and part.attr == "module"
        and _is_bare(project, module, part.value, known)
        for part in outward(node)
    )


def may_be_wrapped(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an object may stand behind a wrapper of torch, which has no attributes of its object."""
    return any(wraps for _, wraps in _assigned_to(project, module, node))


def _is_bare(
    project: Project, module: Module, held: ast.expr, known: set[tuple[str, bool]]
) -> bool:
    name = path(held)
    if name is None or any(name in test for test, _ in known):
        return False
    found = _assigned_to(project, module, held)
    around = [statement for statement, wraps in found if wraps]
    some = 0 < len(around) < len(found)
    return some and not any(known >= set(_tests(module, statement)) for statement in around)


def _assigned_to(project: Project, module: Module, held: ast.expr) -> Sequence[_Assigned]:
    """Return the statements of a file that assign to a variable or attribute, and which of them wrap what it is to hold."""
    table = kept(project, (_assigned, module), partial(_assigned, project, module))
    return table.get(_variable(module, held), ())


def _assigned(project: Project, module: Module) -> dict[_Variable, list[_Assigned]]:
    table: dict[_Variable, list[_Assigned]] = {}
    for statement in module.tree.nodes(ast.Assign, ast.AnnAssign):
        call = statement.value
        name = project.external(module, call.func) if isinstance(call, ast.Call) else None
        wraps = isinstance(call, ast.Call) and wrapped(name or "", call) is not None
        for target in targets_of(statement):
            table.setdefault(_variable(module, target), []).append((statement, wraps))
    return table


def _variable(module: Module, node: ast.expr) -> _Variable:
    """Return what tells a variable, or an attribute, from others: its path, and the scope that binds it."""
    return path(node), module.scopes.owner(node) if isinstance(node, ast.Name) else None


def _tests(module: Module, node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the texts of the tests behind which a node stands, and how each came out."""
    return ((ast.unparse(up.test), truth) for up, truth in module.tree.sides(node))
