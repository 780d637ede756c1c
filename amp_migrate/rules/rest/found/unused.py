"""Parameters that get no gradient in some steps, of which torch's DistributedDataParallel has to be told."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.facts.closure import closure
from amp_migrate.facts.constants import is_true
from amp_migrate.facts.paths import all_given, called_on, tail
from amp_migrate.placement.backwards.freezing import freezes, frozen_later
from amp_migrate.plan.cannot import place_of
from amp_migrate.plan.model import Decision, Status
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import made_with_object, reachable
from amp_migrate.project.rounds import may_run_behind
from amp_migrate.rules.base import FileContext, Rule, decision
from amp_migrate.rules.rest.found.device import allows_unused
from amp_migrate.rules.rest.found.left_out import left_out
from amp_migrate.training.beliefs import LIST_PARAMETERS
from amp_migrate.training.bindings import bound_value

_HANDS_OUT = frozenset({"children", "modules", "named_children", "named_modules", *LIST_PARAMETERS})

RAISES = "torch raises where a parameter gets no gradient in a step, which Apex allowed"
ADD = "if some parameters get no gradient in a step, add find_unused_parameters=True"


class Owner(NamedTuple):
    """What a parameter is taken from, and whether a test or a name on the way leaves others out."""

    node: ast.expr
    part: bool


def without_gradient(project: Project, module: Module, call: ast.Call) -> str | None:
    """Return why parameters of what a call wraps surely get no gradient in some steps, None where nothing says so.

    The text is empty where the program says it itself, to torch's class in the other arm of a test.
    """
    if allows_unused(project, module, call):
        return ""
    if frozen_later(project, module, call):
        return "parameters are frozen after this"
    for where, node in _frozen_elsewhere(project, module, call):
        return f"parameters are frozen after this ({place_of(where, node)})"
    for where, node, part in left_out(project, module, call):
        return f"a pass leaves out {part} ({place_of(where, node)}), whose parameters get no gradient then"
    return None


def noted(
    rule: Rule, context: FileContext, module: Module, call: ast.Call, delayed: bool
) -> Iterator[Decision]:
    """Say what becomes of parameters that get no gradient; `delayed` tells that Apex's class reduced behind the backward pass."""
    unused = without_gradient(context.project, module, call)
    if unused is not None:
        if unused:
            note = (
                f"{unused}: find_unused_parameters=True lets torch go on without them, as Apex did"
            )
            yield decision(rule, Status.NOTE, module, call, note)
        return
    note = RAISES
    if delayed:
        note = "delay_allreduce is dropped: torch reduces while the backward pass runs"
    yield decision(rule, Status.NOTE, module, call, note, advice=ADD)


def _frozen_elsewhere(
    project: Project, module: Module, call: ast.Call
) -> Iterator[tuple[Module, ast.AST]]:
    """Yield where other functions freeze a part of what a call wraps, once it is wrapped.

    What constructors come to is frozen before, and torch's class asks nothing of it.
    """
    here, network = project.function_of(module, call), _Network(project, module, call)
    for near in project.connected_with([module]):
        for node in near.tree.nodes(ast.Call, ast.Attribute):
            if not freezes(node) or _lets_train(near, node):
                continue
            function = project.function_of(near, node)
            if function is here or made_with_object(project, function):
                continue
            if any(network.has(function, owner) for owner in _owners(near, node)):
                if may_run_behind(project, (here, call), (function, node)):
                    yield near, node


class _Network:
    """The network that a call wraps."""

    def __init__(self, project: Project, module: Module, call: ast.Call) -> None:
        self._project = project
        self._home = project.function_of(module, call)
        found = project.values.lineage(module, call)
        for given in call.args[:1]:
            found |= project.values.lineage(module, given)
            found |= project.values.with_receivers(module, given)[1]
        self._groups = found

    def has(self, function: Function, owner: Owner) -> bool:
        """Tell whether an owner in a function is a part of the network, or all of it of which something is left out.

        What nothing is known of is that, where a program runs the function that wraps the network, too.
        """
        module, values = function.module, self._project.values
        node, part = owner
        while True:
            if values.lineage(module, node) & self._groups:
                return part
            if isinstance(node, ast.Attribute):
                if part and not values.facts(module, node) and self._runs_with(function):
                    return True
                part |= node.attr != "module"
            elif not isinstance(node, ast.Subscript):
                return False
            node = node.value

    def _runs_with(self, function: Function) -> bool:
        """Tell whether a function, or what makes its object, runs in a program that wraps the network."""
        made = function.cls.method("__init__") if function.cls is not None else None
        return any((made or function) in reachable(self._project, start) for start in self._around)

    @cached_property
    def _around(self) -> list[Function]:
        """The functions that come to the wrapping, by calls that run nothing of another program in its place."""
        project = self._project

        def calling(here: Function) -> Iterator[Function]:
            for site in project.callers(here):
                if set(project.callees(site.call)) <= set(project.family(here)):
                    yield site.function

        return list(closure([self._home], calling))


def _lets_train(module: Module, node: ast.AST) -> bool:
    """Tell whether a statement only lets parameters require gradients."""
    if isinstance(node, ast.Call):
        given = all_given(node)
        return not given or is_true(given[0])
    stmt = module.tree.statement(node)
    return isinstance(stmt, ast.Assign) and is_true(stmt.value)


def _owners(module: Module, node: ast.Call | ast.Attribute) -> Iterator[Owner]:
    """Yield what the parameters are taken from that a node freezes."""
    held = node.func if isinstance(node, ast.Call) else node
    assert isinstance(held, ast.Attribute)
    yield from _taken_from(module, held.value, False, set())


def _taken_from(module: Module, node: ast.expr, part: bool, seen: set[ast.AST]) -> Iterator[Owner]:
    yield Owner(node, part)
    if not isinstance(node, ast.Name):
        return
    for binding in module.scopes.bound(node):
        value = bound_value(module, binding)
        if binding in seen or value is None:
            continue
        seen.add(binding)
        loop = module.tree.parent(binding)
        while isinstance(loop, ast.Tuple):
            loop = module.tree.parent(loop)
        if not isinstance(loop, ast.For):
            yield from _taken_from(module, value, part, seen)
        elif isinstance(value, ast.Call) and (held := called_on(value)) is not None:
            if tail(value) not in _HANDS_OUT:
                continue
            left_out = any(
                isinstance(up, ast.If) and loop in module.tree.ancestors(up)
                for up in module.tree.ancestors(node)
            )
            yield from _taken_from(module, held, part or left_out, seen)
