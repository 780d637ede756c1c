"""Tests of guards that change their answer once Apex was initialized behind them, while Apex stays on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from amp_migrate.apex.sites import Site
from amp_migrate.facts.closure import spread
from amp_migrate.facts.paths import defs, path, uses, walk
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Function, Project
from amp_migrate.project.order import Loop, exclusive, in_branch, inside, levels
from amp_migrate.project.relatives import family
from amp_migrate.training.bindings import values_of
from amp_migrate.training.flags.setting import got, read

_COUNTS = (ast.For, ast.AsyncFor, ast.comprehension)


def is_spent(project: Project, site: Site, holder: ast.If, readers: list[ast.AST]) -> bool:
    """Tell whether the test around an initialize may say no where `readers` run later.

    So ``if self.optimizer is None``, whose body makes the optimizer, and ``if epoch == 0`` in a loop over epochs.
    """
    read = _read(project, site, holder.test)
    lasting = _global(site)
    return (
        any("." in name or name in lasting for name in read & _set_behind(site, holder))
        or bool(read & _bound_by_loops(site, holder, readers))
        or bool(read & _counted(site))
        or bool(read & _passed_by_loops(project, site))
    )


def is_left_once(project: Project, site: Site, test: ast.If) -> bool:
    """Tell whether a test that returns in front of an initialize may do so once that has run: ``if self.ready: return``."""
    block = site.module.tree.block(test)
    behind = block[block.index(test) + 1 :]
    return any("." in name for name in _read(project, site, test.test) & _defs(site, behind))


def _read(project: Project, site: Site, test: ast.expr) -> set[str]:
    """Return every path that a test reads: by name, by what its variables are computed from, and in methods that it asks."""
    found: set[str] = set()
    for function, node in read(project, site.function, test):
        parts = spread([node], partial(_computed, function))
        for part in (p for p in parts if p is not function.scope):
            named = got(part)
            found |= uses(part) | (uses(named) if named is not None else set())
    return found


def _computed(function: Function, node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node, and what a variable of its function is computed from."""
    yield from ast.iter_child_nodes(node)
    if isinstance(node, ast.Name) and function.module.scopes.is_local(node):
        yield from values_of(function.module, node)


def _global(site: Site) -> set[str]:
    """Return the variables of its file that the function of an initialize sets."""
    nodes = (node for node in site.function.own_nodes if isinstance(node, ast.Global))
    return {name for node in nodes for name in node.names}


def is_over(site: Site, holder: ast.If) -> bool:
    """Tell whether the test around an initialize that only casts says something else behind its branch.

    So ``if net is None``, whose body makes the network: what runs it behind the test cannot ask it again.
    ``net = net.cuda()`` leaves the answer as it is.
    """
    tree = site.module.tree
    branch = holder.body if in_branch(tree, site.node, holder.body) else holder.orelse
    read = uses(holder.test)
    return any(
        read & _defs(site, [stmt], instead=False) - uses(stmt)
        for top in branch
        for stmt in walk(top)
        if isinstance(stmt, ast.stmt)
    )


def _set_behind(site: Site, holder: ast.If) -> set[str]:
    """Return what the branch of the initialize sets besides it, and not in its place: in the other arm of a test in it."""
    tree = site.module.tree
    branch = holder.body if in_branch(tree, site.node, holder.body) else holder.orelse
    again = any(isinstance(up, Loop) and inside(tree, up, holder) for up in levels(tree, site.node))
    return _defs(site, branch, instead=again)


def _defs(site: Site, block: list[ast.stmt], *, instead: bool = True) -> set[str]:
    """Return what the statements of a block set, without what the initialize gives back as it is given.

    Without `instead`, what only sets something where the initialize does not run is left out.
    """
    found: set[str] = set()
    for stmt in block:
        for node in walk(stmt):
            if isinstance(node, ast.expr):
                if not instead and exclusive(site.module.tree, node, site.node):
                    continue
                own = inside(site.module.tree, node, site.statement)
                found |= defs(node) - (uses(site.statement) if own else set())
    return found


def _bound_by_loops(site: Site, holder: ast.If, readers: list[ast.AST]) -> set[str]:
    """Return what the loops around the guard set that run a reader too."""
    tree = site.module.tree
    found: set[str] = set()
    for loop in levels(tree, holder):
        if isinstance(loop, Loop) and any(inside(tree, reader, loop) for reader in readers):
            found |= _defs(site, loop.body)
            if not isinstance(loop, ast.While):
                found |= defs(loop.target)
    return found


def _counted(site: Site) -> set[str]:
    """Return the attributes that the class of the method counts up: ``self.epoch += 1``."""
    cls = site.function.cls
    methods = [m for c in family(cls) for m in c.methods.values()] if cls is not None else []
    return {
        name
        for method in methods
        for node in method.own_nodes
        if isinstance(node, ast.AugAssign) and (name := path(node.target)) and "." in name
    }


def _passed_by_loops(project: Project, site: Site) -> set[str]:
    """Return the parameters that a caller gives the variable of its loop: ``train(epoch)``."""
    found: set[str] = set()
    for call in project.callers(site.function):
        tree = call.function.module.tree
        for name, argument in project.arguments(call, site.function).items():
            if isinstance(argument, ast.Name) and argument.id in _targets(tree, call.call):
                found.add(name)
    return found


def _targets(tree: Tree, node: ast.AST) -> set[str]:
    return {
        name for up in tree.ancestors(node) if isinstance(up, _COUNTS) for name in defs(up.target)
    }
