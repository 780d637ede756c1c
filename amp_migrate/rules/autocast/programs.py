"""Which programs run a function: those that come to an initialize, and those that never had Apex."""

from __future__ import annotations

import ast

from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import tail, walk
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Project
from amp_migrate.project.reach import reachable
from amp_migrate.training.forwards.classes import is_of_network


def serves_others(unit: Unit, function: Function) -> bool:
    """Tell whether programs that initialize run a function, and others too, where nothing is to be cast."""
    begin = _roots(unit.project, function)
    leads = {root: _leads(unit, root) for root in begin}
    return any(leads.values()) and any(
        not leads[root] and _is_program(root) for root in begin if root is not function
    )


def is_come_to(unit: Unit, function: Function) -> bool:
    """Tell whether a program, or what initializes, runs a function."""
    roots = _roots(unit.project, function)
    return any(_is_program(root) or _leads(unit, root) for root in roots)


def _leads(unit: Unit, root: Function) -> bool:
    """Tell whether what nothing calls comes to an initialize, or is a function of a file that came to one when it was run."""
    made, come = unit.initializing, unit.beginning.functions
    behind = root.node is not None and root.cls is None and root.module.top in made
    return behind or root in come or bool(made & reachable(unit.project, root))


def only_in_forwards(project: Project, function: Function) -> bool:
    """Tell whether all that calls a function is the forward pass of a network, and it may be one: cast where that runs."""
    if _is_forward(function):
        return True
    ways = closure([function], lambda f: () if _is_forward(f) else _callers(project, f))
    ends = [f for f in ways if not _callers(project, f) or _is_forward(f)]
    return all(map(_is_forward, ends))


def _callers(project: Project, function: Function) -> list[Function]:
    """Return the functions that call a function, each once."""
    return list(dict.fromkeys(site.function for site in project.callers(function)))


def _is_forward(function: Function) -> bool:
    forward = function.name == "forward" and is_of_network(function)
    return forward or _is_of_a_layer(function)


def _is_of_a_layer(function: Function) -> bool:
    """Tell whether a method may be one that the forward of a layer of torch runs, as `_conv_forward` of a convolution."""
    layers = {base for cls in (function.class_around,) if cls for base in cls.externals()}
    of_torch = any(b.startswith("torch.nn.") and b != "torch.nn.Module" for b in layers)
    return of_torch and function.name.startswith("_") and not function.name.startswith("__")


def _roots(project: Project, function: Function) -> list[Function]:
    """Return the functions that nothing calls from which a function is reached."""

    def holders(here: Function) -> list[Function]:
        around = [] if here.parent is None else [here.parent]
        return [*(site.function for site in project.callers(here)), *around]

    return [here for here in closure([function], holders) if not project.callers(here)]


def _is_program(function: Function) -> bool:
    """Tell whether a function is run by itself: the top level of a file, or what reads a command line."""
    if function.node is None:
        return True
    calls = (node for node in walk(function.node) if isinstance(node, ast.Call))
    return any(tail(call) in ("parse_args", "parse_known_args") for call in calls)
