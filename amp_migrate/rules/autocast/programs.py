"""Which programs run a function: those that come to an initialize, and those that never had Apex."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from amp_migrate.apex.sites import Site
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import tail, walk
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Class, Function, Project
from amp_migrate.project.imported import coming
from amp_migrate.project.once import kept
from amp_migrate.project.programs import beside
from amp_migrate.project.reach import reachable
from amp_migrate.training.forwards.classes import is_of_network


class Near(NamedTuple):
    """The programs that share code with a unit.

    Those in the files `leaving` were one unit with it and keep Apex. Of the initializes of other units, those of `alike`
    cast what they share in the same way, and those of `kept` keep Apex.
    """

    leaving: frozenset[str]
    alike: frozenset[Site]
    kept: frozenset[Site]


NOBODY = Near(frozenset(), frozenset(), frozenset())


def serves_others(unit: Unit, function: Function) -> bool:
    """Tell whether programs that initialize run a function, and others too, where nothing is to be cast."""
    begin = _roots(unit.project, function)
    leads = {root: _leads(unit, root) for root in begin}
    return any(leads.values()) and any(
        not leads[root] and _is_program(root) and not _is_alike(unit, root)
        for root in begin
        if root is not function
    )


def staying(unit: Unit, function: Function) -> Iterator[Site]:
    """Yield the initializes that stay with Apex in programs that may run a function."""
    kept = _in_order(unit.home.beside.kept)
    return (site for site in kept if may_run(unit.project, site, function))


def keeps_apex(unit: Unit, function: Function) -> Site | None:
    """Return an initialize that stays with Apex in a program that may run a function; None where there is none."""
    return next(staying(unit, function), None)


def may_run(project: Project, site: Site, function: Function) -> bool:
    """Tell whether a program that initializes at a site may run a function, by calls or by what it makes of its class."""
    if function.module.path not in beside(project, site.module.path):
        return False
    ran, made = kept(project, (may_run, site), lambda: _ran(project, site))
    if function in ran:
        return True
    if function.cls is not None:
        return function.cls in made and not project.callers(function)
    return not project.callers(function) and bool(
        any(project.escapes(function)) or getattr(function.node, "decorator_list", ())
    )


def _ran(project: Project, site: Site) -> tuple[frozenset[Function], frozenset[Class]]:
    """Return what comes to an initialize runs, and the classes, with their bases, of which that makes objects."""
    ways = coming(project, [(site.function, site.node)]).functions
    starts = {f for way in ways for f in (way, way.module.top)}
    ran = frozenset().union(*(reachable(project, start) for start in starts))
    calls = (call for function in ran for call in function.calls)
    made = {cls for call in calls for cls in project.constructed(call)}
    return ran, frozenset(base for cls in made for base in cls.mro())


def _is_alike(unit: Unit, root: Function) -> bool:
    """Tell whether what nothing calls comes to an initialize of a program that casts what it shares as the unit does."""
    alike = unit.home.beside.alike
    come = coming(unit.project, [(s.function, s.node) for s in _in_order(alike)]).functions
    return root in come or not {s.function for s in alike}.isdisjoint(reachable(unit.project, root))


def _in_order(sites: Iterable[Site]) -> list[Site]:
    return sorted(sites, key=lambda site: (site.module.path, site.span))


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
