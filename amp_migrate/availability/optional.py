"""A name that holds `amp` where an option asks for it and None elsewhere: the program's own switch for AMP."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import bottom
from amp_migrate.facts.scopes import ScopeNode, assignments, targets_of
from amp_migrate.project import Module


@dataclass(eq=False, slots=True)
class Optional:
    """The switches of one module: the imports that turn one on, and the scopes and names that hold them.

    `tests` holds the names that are only ever asked, with the option that they stand for.
    """

    imports: list[ast.stmt] = field(default_factory=list)
    tests: dict[tuple[ast.AST | None, str], ast.expr] = field(default_factory=dict)
    names: set[tuple[ast.AST, str]] = field(default_factory=set)
    nodes: set[ast.AST] = field(default_factory=set)

    def holds(self, module: Module, node: ast.Name) -> bool:
        """Tell whether a name is such a switch."""
        return (module.scopes.owner(node), node.id) in self.names


def optional(
    module: Module, known: Callable[[ast.expr], bool | None], used: Callable[[str], bool]
) -> Optional:
    """Return the names of a module that hold amp or None by a test that is not about Apex being installed.

    `used` tells that the program only uses what an attribute of some name holds, and never asks for it.
    """
    found = Optional()
    for node in module.tree.nodes(ast.Import, ast.ImportFrom):
        for alias in node.names:
            if not _is_amp(node, alias) or not _asked(module, node, known):
                continue
            name = alias.asname or alias.name
            scope = module.scopes.find(module.scopes.scope_of(node), name)
            nones = _empty(module, scope, name)
            if scope is None or not nones or not _tested(module, scope, name):
                continue
            test = _option(module, node, nones)
            reads = _reads(module, scope, name, used)
            if test is not None and reads is not None and not (reads and _is_global(node, module)):
                found.tests[scope, name] = test
                continue
            found.imports.append(_whole(module, node))
            found.names.add((scope, name))
            found.nodes |= {*nones, *ast.walk(found.imports[-1])}
    return found


def _is_amp(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    if isinstance(node, ast.ImportFrom):
        return f"{node.module}.{alias.name}" == "apex.amp"
    return alias.name == "apex.amp" and alias.asname is not None


def _asked(module: Module, node: ast.stmt, known: Callable[[ast.expr], bool | None]) -> bool:
    """Tell whether an import stands under a test of an option."""
    sides = ((up, holds) for up, holds in module.tree.sides(node) if isinstance(up, ast.If))
    return next((holds and known(up.test) is None for up, holds in sides), False)


def _empty(module: Module, scope: ScopeNode | None, name: str) -> list[ast.stmt]:
    """Return the assignments of None to a name of a scope."""
    return [
        node
        for node in assignments(module.tree)
        if is_none(node.value)
        for target in targets_of(node)
        if isinstance(target, ast.Name)
        and target.id == name
        and module.scopes.owner(target) is scope
    ]


def _tested(module: Module, scope: ScopeNode, name: str) -> bool:
    """Tell whether the name is read as a value: tested, handed on or returned."""
    reads = module.scopes.reads(scope, name)
    return not all(isinstance(module.tree.parents[node], ast.Attribute) for node in reads)


def _whole(module: Module, node: ast.stmt) -> ast.stmt:
    """Return an import, or the `try` around it that only says that Apex is missing."""
    up = module.tree.parents[node]
    if (
        isinstance(up, ast.Try)
        and node in up.body
        and len(up.body) == 1
        and not up.orelse + up.finalbody
    ):
        return up
    return node


def _option(module: Module, node: ast.stmt, nones: list[ast.stmt]) -> ast.expr | None:
    """Return the plain option of ``if args.fp16: from apex import amp``, with None assigned in the `else`."""
    up = next(a for a in module.tree.ancestors(node) if isinstance(a, ast.If))
    plain = bottom(up.test)
    other = [stmt for stmt in up.orelse if not isinstance(stmt, ast.Global)]
    return up.test if isinstance(plain, ast.Name) and other == nones else None


_ASKING = (ast.BoolOp, ast.UnaryOp, ast.Compare)


def _is_global(node: ast.stmt, module: Module) -> bool:
    """Tell whether a `global` statement stands beside the None that a name holds otherwise."""
    up = next(a for a in module.tree.ancestors(node) if isinstance(a, ast.If))
    return any(isinstance(stmt, ast.Global) for stmt in up.orelse)


def _reads(
    module: Module, scope: ScopeNode, name: str, used: Callable[[str], bool]
) -> list[ast.AST] | None:
    """Return the tests of a name; None where it is handed on, other than to an attribute that nothing asks."""
    parents = module.tree.parents
    tests: list[ast.AST] = []
    for node in module.scopes.reads(scope, name):
        up = parents[node]
        if isinstance(up, ast.Attribute):
            continue
        if isinstance(up, ast.Assign) and all(
            isinstance(target, ast.Attribute) and used(target.attr) for target in up.targets
        ):
            continue
        while isinstance(up, _ASKING):
            up = parents[up]
        if not isinstance(up, ast.If | ast.IfExp | ast.Assert):
            return None
        tests.append(up)
    return tests


def imported(module: Module, node: ast.Name) -> bool:
    """Tell whether an import binds a name, and not a call that returns amp or None."""
    bindings = module.scopes.bound(node)
    return any(isinstance(binding, ast.alias) for binding in bindings)
