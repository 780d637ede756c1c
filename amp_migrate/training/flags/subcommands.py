"""Options that only some subcommands of a command line have: what others give has no such attribute."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from amp_migrate.facts.closure import closure
from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import tail
from amp_migrate.project import Function, Project
from amp_migrate.project.once import kept, once


def may_lack(project: Project, function: Function, condition: ast.AST) -> bool:
    """Tell whether a subcommand may come to a function without an option that a condition reads there."""
    options = _of_some(project)
    read = {node.attr for node in ast.walk(condition) if isinstance(node, ast.Attribute)}
    return any(
        kept(project, (may_lack, function, name), partial(_comes_without, project, function, name))
        for name in read & options
    )


def _comes_without(project: Project, function: Function, option: str) -> bool:
    """Tell whether a way from where nothing calls any more to a function comes past no code that reads an option."""

    def before(here: Function) -> list[Function]:
        calling = [site.function for site in project.callers(here)]
        return calling if here.parent is None else [*calling, here.parent]

    reads = _reading(option)
    ways = closure([function], lambda here: () if reads(here) else before(here))
    return any(not reads(here) and not before(here) for here in ways)


def _reading(option: str) -> Callable[[Function], bool]:
    return lambda function: any(
        isinstance(node, ast.Attribute) and node.attr == option and isinstance(node.ctx, ast.Load)
        for node in function.own_nodes
    )


@once
def _of_some(project: Project) -> frozenset[str]:
    """Return the options that only parsers of subcommands have."""
    calls = [
        (module, call, call.func)
        for module, call in project.nodes(ast.Call)
        if isinstance(call.func, ast.Attribute)
    ]
    made = [(module, call) for module, call, _ in calls if tail(call) == "add_parser"]
    groups = frozenset[int]().union(*(project.values.groups(*one) for one in made))
    some, every = set[str](), set[str]()
    for module, call, func in calls if made else ():
        if tail(call) == "add_argument":
            own = project.values.groups(module, func.value) & groups
            (some if own else every).update(_named(call))
    return frozenset(some - every)


def _named(call: ast.Call) -> list[str]:
    """Return what an option is called by ``add_argument``, with ``_`` for ``-``."""
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "dest")]
    names = (string(node) for node in given)
    return [name.lstrip("-").replace("-", "_") for name in names if name is not None]
