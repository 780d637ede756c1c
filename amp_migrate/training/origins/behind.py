"""Whether ``x.module`` is there: not in runs that leave the object of a name without a wrapper."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import outward, path
from amp_migrate.facts.scopes import targets_of
from amp_migrate.project import Module, Project
from amp_migrate.values.wrappers import wrapped


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


def _is_bare(
    project: Project, module: Module, held: ast.expr, known: set[tuple[str, bool]]
) -> bool:
    name = path(held)
    if name is None or any(name in test for test, _ in known):
        return False
    wraps, bare = [], False
    for statement in module.tree.nodes(ast.Assign, ast.AnnAssign):
        if not any(_is_same(module, target, held) for target in targets_of(statement)):
            continue
        call = statement.value
        external = project.external(module, call.func) if isinstance(call, ast.Call) else None
        if isinstance(call, ast.Call) and wrapped(external or "", call) is not None:
            wraps.append(statement)
        else:
            bare = True
    return bare and bool(wraps) and not any(known >= set(_tests(module, w)) for w in wraps)


def _is_same(module: Module, target: ast.expr, held: ast.expr) -> bool:
    if path(target) != path(held):
        return False
    names = [list(outward(node))[-1] for node in (target, held)]
    owners = [module.scopes.owner(name) if isinstance(name, ast.Name) else None for name in names]
    return isinstance(held, ast.Attribute) or owners[0] is owners[1]


def _tests(module: Module, node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the texts of the tests behind which a node stands, and how each came out."""
    return ((ast.unparse(up.test), truth) for up, truth in module.tree.sides(node))
