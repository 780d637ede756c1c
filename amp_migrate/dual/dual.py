"""Programs that hold native AMP beside Apex and choose between them: the Apex branches go."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.autocast.adopted import adopted
from amp_migrate.dual.arms import conditions, parts, unbound
from amp_migrate.facts.paths import path, walk
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Function, Module, Project
from amp_migrate.unit.cannot import Cannot, spoken

_NATIVE = ("torch.cuda.amp.", "torch.amp.", "torch.autocast")


@dataclass(frozen=True, eq=False, slots=True)
class Branch:
    """An `if` (or `elif`) whose body is for Apex alone. `loud`: without it the program would not notice."""

    module: Module
    node: ast.If
    sites: tuple[Site, ...]
    loud: bool


def nodes_of(beside: list[Branch]) -> set[ast.AST]:
    """Return every node of some branches, which go."""
    return {n for branch in beside for stmt in branch.node.body for n in ast.walk(stmt)} | {
        b.node for b in beside
    }


def branches(project: Project, found: list[Site]) -> list[Branch]:
    """Return the Apex branches of a unit that has native AMP beside Apex; nothing for other units.

    Raises `Cannot` where some Apex sites stand in no branch of their own.
    """
    modules = list(dict.fromkeys(site.module for site in found))
    if not any(is_native(project, m, node) for m in modules for node in m.tree.nodes(ast.Call)):
        return []
    tests = {_test(node) for site in found if (node := beside_native(project, site)) is not None}
    if not tests:
        _refuse_mixed(project, found)
        return []
    chosen: dict[ast.If, list[Site]] = {}
    for site in found:
        node = beside_native(project, site) or _same_test(site, tests)
        if node is None:
            raise Cannot(
                "AMP912",
                site.module,
                site.node,
                "the files given have native AMP too, and no test here chooses between it and this use of Apex",
                "delete what uses Apex here and keep native AMP, or put it under the test that chooses Apex, then run again",
            )
        chosen.setdefault(node, []).append(site)
    _refuse_unbound(modules, chosen)
    outer = [n for n in chosen if not any(_within(n, o) for o in chosen if o is not n)]
    noticed = any(_raises_else(node) for node in outer)
    found_branches = [
        _branch(chosen[node][0].module, node, chosen[node], noticed) for node in outer
    ]
    _refuse_same_switch(project, found_branches)
    return found_branches


def _refuse_same_switch(project: Project, found: list[Branch]) -> None:
    """Runs that choose native AMP must not come by what raises."""
    for branch in found:
        if branch.loud and native_under(project, branch.module, branch.node.test):
            raise Cannot(
                "AMP912",
                branch.module,
                branch.node,
                f"amp.initialize runs under `{ast.unparse(branch.node.test)}`, which native AMP needs to hold as well",
                "delete this branch and keep the native one, then run again",
            )


def _refuse_unbound(modules: list[Module], chosen: Iterable[ast.If]) -> None:
    """What an Apex branch sets may be read in another one."""
    gone = {n for node in chosen for stmt in node.body for n in ast.walk(stmt)}
    for module, name in unbound(modules, gone):
        raise Cannot(
            "AMP912",
            module,
            name,
            f"`{name.id}` is read here, and set only in a branch for Apex that would go",
            f"set `{name.id}` for native AMP as well, or delete what reads it, then run again",
        )


def _refuse_mixed(project: Project, found: list[Site]) -> None:
    """Native AMP in the very functions that use Apex would be doubled."""
    for function in dict.fromkeys(site.function for site in found if site.kind is not Kind.VALUE):
        kept = _adopted(project, function, found)
        for node in walk(function.scope):
            if (
                is_native(project, function.module, node)
                and node not in kept
                and project.function_of(function.module, node) is function
            ):
                raise Cannot(
                    "AMP912",
                    function.module,
                    node,
                    f"{spoken(function)} uses both native AMP and Apex, and it is not known which of the two runs when",
                    "delete one of the two here, then run again",
                )


def _adopted(project: Project, function: Function, found: list[Site]) -> set[ast.AST]:
    """Return what opens the autocasts under which the losses that Apex scales are computed: they stay."""
    scaled = [s for s in found if s.kind is Kind.SCALE_LOSS and s.function is function]
    blocks = [adopted(project, function, s.call.args[0], s.node) for s in scaled if s.call.args]
    return {item.context_expr for block in blocks if block for item in block.items}


def native_under(project: Project, module: Module, test: ast.expr) -> bool:
    """Tell whether some native AMP of a module only runs where a test holds."""
    return any(
        is_native(project, module, node) and parts(test) <= conditions(module.tree, node)
        for node in module.tree.nodes(ast.Call)
    )


def is_native(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether a node is a call of native AMP."""
    if not isinstance(node, ast.Call):
        return False
    name = project.external(module, node.func)
    if name is not None:
        return name.startswith(_NATIVE)
    text = path(node.func) or ""
    return text.endswith(("scaler.scale", "scaler.unscale_", "scaler.step"))


def beside_native(project: Project, site: Site) -> ast.If | None:
    """Return the `if` whose body holds the site and whose other branches hold native AMP."""
    tree = site.module.tree
    child: ast.AST = site.node
    for up in tree.ancestors(site.node):
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        if isinstance(up, ast.If) and child in up.body:
            others = [*up.orelse, *_earlier(tree, up)]
            if any(is_native(project, site.module, n) for stmt in others for n in ast.walk(stmt)):
                own = any(
                    is_native(project, site.module, n) for stmt in up.body for n in ast.walk(stmt)
                )
                return None if own else up
        child = up
    return None


def _earlier(tree: Tree, node: ast.If) -> list[ast.stmt]:
    """Return the bodies of the tests before an `elif`."""
    found: list[ast.stmt] = []
    up = tree.parents.get(node)
    while isinstance(up, ast.If) and up.orelse == [node]:
        found += up.body
        node, up = up, tree.parents.get(up)
    return found


def _same_test(site: Site, tests: set[str]) -> ast.If | None:
    child: ast.AST = site.node
    for up in site.module.tree.ancestors(site.node):
        if isinstance(up, ast.If) and child in up.body and _test(up) in tests:
            return up
        child = up
    return None


def _test(node: ast.If) -> str:
    return ast.dump(node.test)


def _within(inner: ast.AST, outer: ast.If) -> bool:
    return any(inner is node for stmt in outer.body for node in ast.walk(stmt))


def _branch(module: Module, node: ast.If, found: list[Site], noticed: bool) -> Branch:
    initializes = any(site.kind is Kind.INITIALIZE for site in found)
    return Branch(module, node, tuple(found), initializes and not noticed)


def _raises_else(node: ast.If) -> bool:
    """Tell whether a value that no test of the chain knows ends in an error."""
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
    return any(isinstance(stmt, ast.Raise) for stmt in node.orelse)
