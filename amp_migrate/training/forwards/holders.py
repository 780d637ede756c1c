"""Objects that a library makes of a network and keeps it in: calling one may run the network."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Protocol

from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import all_given, is_place, tail
from amp_migrate.project import Module, Project
from amp_migrate.project.once import kept, once
from amp_migrate.training.beliefs import COPIES, MAKES_EVALUATOR
from amp_migrate.training.forwards.classes import is_of_network, makes_module
from amp_migrate.training.forwards.unseen import evaluates_own
from amp_migrate.values.objects import Partial

_CALLS = frozenset({"__call__", "forward"})
# Methods that of all that is called as a function networks alone have, by how many arguments they may get.
_OF_NETWORKS = {
    "eval": 0,
    "load_state_dict": 2,
    "modules": 0,
    "named_modules": 0,
    "named_parameters": 0,
    "parameters": 0,
    "requires_grad_": 1,
}


class Holding(Protocol):
    """Gives the groups of the names that hold what an expression does."""

    def groups(self, module: Module, expression: ast.expr) -> frozenset[int]:
        """Return the groups of all objects that an expression may hold."""


def holders(
    project: Project,
    modules: Iterable[Module],
    values: Holding,
    networks: set[int],
    *,
    alone: bool = False,
) -> set[int]:
    """Return the groups of what code out of sight makes of one of some networks; if `alone`, of it and constants only.

    The second may be the network itself, without what is around it.
    """
    calls = _out_of_sight(project)
    return {
        group
        for module in modules
        for call, given in calls.get(module, ())
        if any(_holds(project, module, values, node, networks) for node in given)
        if project.external(module, call.func) is not None and (not alone or _is_alone(call))
        for group in values.groups(module, call)
    } - networks


@once
def _out_of_sight(project: Project) -> dict[Module, list[tuple[ast.Call, list[ast.expr]]]]:
    """Return the calls of code out of sight that are given variables or attributes, with these."""
    found: dict[Module, list[tuple[ast.Call, list[ast.expr]]]] = {}
    for module, call in project.nodes(ast.Call):
        if not project.callees(call) and not project.constructed(call):
            if copies_later(project, module, call):
                continue
            if is_partial(project, module, call):
                continue  # what that runs of a network is followed in its function
            if given := list(_given(call)):
                found.setdefault(module, []).append((call, given))
    return found


def _holds(
    project: Project, module: Module, values: Holding, node: ast.expr, networks: set[int]
) -> bool:
    """Tell whether an expression is one of some networks, or a part of one that is a module itself."""
    if values.groups(module, node) & networks:
        return True
    if not any(map(makes_module, project.values.made_by(module, node))):
        return False
    while isinstance(node, ast.Attribute):
        node = node.value
        if values.groups(module, node) & networks:
            return True
    return False


def used_as_networks(project: Project, values: Holding) -> frozenset[int]:
    """Return the groups of what is asked for its parameters, given weights or put into a mode as networks alone are."""
    return frozenset(
        group
        for module, call in project.nodes(ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_NETWORKS
        if len(all_given(call)) <= _OF_NETWORKS[call.func.attr]
        for group in values.groups(module, call.func.value)
    )


def is_partial(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call makes a partial object of a function of the project that is no method of a network."""
    return any(
        isinstance(fact, Partial) and not is_of_network(fact.function)
        for fact in project.values.facts(module, call)
    )


def _is_alone(call: ast.Call) -> bool:
    return sum(not isinstance(node, ast.Constant) for node in all_given(call)) == 1


def _given(call: ast.Call) -> Iterator[ast.expr]:
    for node in all_given(call):
        inner = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
        yield from (part for part in inner if is_place(part))


def called(project: Project, module: Module, call: ast.Call) -> ast.expr:
    """Return the object that a call is of, by itself, by its ``forward`` or by what evaluates the network that it keeps."""
    func = call.func
    if not isinstance(func, ast.Attribute):
        return func
    runs = func.attr in _CALLS or evaluates_own(func.attr)
    if func.attr == "run" and not runs:
        made = project.values.made_by(module, func.value)
        runs = any(MAKES_EVALUATOR.search(name) for name in made)
    return func.value if runs else func


def copied_by(project: Project, module: Module, call: ast.Call) -> list[tuple[Module, ast.expr]]:
    """Return what a call makes a copy or a running average of, also through ``partial``; nothing where it makes none."""
    return kept(project, (copied_by, call), lambda: _copied(project, module, call))


def _copied(project: Project, module: Module, call: ast.Call) -> list[tuple[Module, ast.expr]]:
    given = [(module, node) for node in call.args]
    if tail(call) in COPIES or _makes_copies(project, module, call.func):
        return given[:1]
    partials = [
        [(origin, node) for node in made.args[1:]]
        for origin, made in project.values.kept_by(module, call.func)
        if made.args and _makes_copies(project, origin, made.args[0])
    ]
    return [found for first in partials for found in [*first, *given][:1]]


def copies_later(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call makes a partial object that copies a network when it is called, and runs none."""
    return (
        tail(call) == "partial" and bool(call.args) and _makes_copies(project, module, call.args[0])
    )


def makes_copy(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether all that a call does is to make a copy or a running average of what it is given."""
    return tail(call) in COPIES or bool(copied_by(project, module, call))


def _makes_copies(project: Project, module: Module, func: ast.expr) -> bool:
    if last_name(func) in COPIES:
        return True
    name = project.external(module, func) if is_place(func) else None
    return name is not None and name.rpartition(".")[2] in COPIES
