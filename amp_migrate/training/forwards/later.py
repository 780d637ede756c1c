"""Code that runs behind the statement that calls it: generators, context managers, iterators."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile

from amp_migrate.facts.scopes import Comprehension
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import LAZILY
from amp_migrate.training.bindings import is_generator, meant

_ENTERED = {ast.withitem: ("__enter__",), ast.For: ("__iter__", "__next__")}


def heads(holder: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what the head of a loop, a comprehension or a ``with`` binds, and of what."""
    if isinstance(holder, ast.For | ast.AsyncFor):
        yield holder.target, holder.iter
    elif isinstance(holder, ast.With | ast.AsyncWith):
        for item in holder.items:
            if item.optional_vars is not None:
                yield item.optional_vars, item.context_expr
    elif isinstance(holder, Comprehension):
        yield from ((part.target, part.iter) for part in reversed(holder.generators))


def comprehensions(tree: Tree, node: ast.AST) -> Iterator[ast.AST]:
    """Yield the comprehensions around a node in its statement, the innermost first."""
    inside = takewhile(lambda up: not isinstance(up, ast.stmt), tree.ancestors(node))
    return (up for up in inside if isinstance(up, Comprehension))


def runs_later(project: Project, module: Module, call: ast.Call) -> list[Function]:
    """Return the functions that a call sets up, and that run where its result is used."""
    given, up = call, module.tree.parent(call)
    while (
        isinstance(up, ast.Call) and given in up.args and meant(project, module, up.func) in LAZILY
    ):
        given, up = up, module.tree.parent(up)
    if isinstance(up, ast.Call) and given is not up.func:
        return []  # what it is given to, as `next` or `list`, runs it
    found = list(filter(is_generator, project.callees(call)))
    for cls in project.constructed(call):
        methods = (cls.method(name) for name in _ENTERED.get(type(up), ()))
        found += [method for method in methods if method is not None]
    return found


def generators_made(project: Project, node: ast.expr) -> list[Function]:
    """Return the generators that an expression makes, where it runs nothing else: they run where they are gone through."""
    callees = project.callees(node) if isinstance(node, ast.Call) else []
    return callees if all(map(is_generator, callees)) else []
