"""What does by Apex the same as something beside it natively: `ApexScaler` and `NativeScaler`, `apex_step` and `amp_step`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.choosing import chosen_by_name
from amp_migrate.dual.arms import around
from amp_migrate.dual.native import is_native, names_native, scales
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.rounds import may_pass


def wrappers(project: Project, found: Iterable[Site]) -> dict[Site, Class]:
    """Return the uses of Apex in classes that work by Apex alone and have a native twin: one with the same methods.

    The twin stands in the file of the class, or is derived from what that is derived from.
    """
    of: dict[Class, list[Site]] = {}
    for site in found:
        cls = site.function.class_around
        if cls is not None:
            of.setdefault(cls, []).append(site)
    return {
        site: cls
        for cls, own in of.items()
        if _has_twin(project, cls) and _needs_apex(project, own)
        for site in own
    }


def _has_twin(project: Project, cls: Class) -> bool:
    if cls.children or cls.node not in cls.module.tree.module.body or cls.node.decorator_list:
        return False
    methods = cls.methods.keys() - {"__init__"}
    others = [*cls.module.classes.values(), *(c for base in cls.bases for c in base.children)]
    return any(
        methods <= {name for up in other.mro() for name in up.methods}
        and _is_native(project, other)
        for other in others
        if other not in cls.mro()
    )


def _needs_apex(project: Project, own: list[Site]) -> bool:
    """Tell whether a method of a class initializes or scales by Apex whichever way its tests go."""
    working = [s for s in own if s.kind in (Kind.INITIALIZE, Kind.SCALE_LOSS)]
    return any(
        not may_pass(project, function, [s.node for s in working if s.function is function])
        for function in {s.function for s in working}
    )


def made(project: Project, cls: Class) -> list[tuple[Module, ast.Call]] | None:
    """Return the calls that make an object of a class; None where it is used in another way."""
    found: list[tuple[Module, ast.Call]] = []
    inside = set(ast.walk(cls.node))
    for module in project.modules.values():
        if cls.name not in module.tree.text:
            continue
        for node in _named(module, cls.name):
            call = module.tree.call_of(node)
            if node in inside:
                continue
            if call is None:
                return None
            found.append((module, call))
        if module.tree.says(cls.name):
            return None
    return found


def with_twins(project: Project, found: Iterable[Site]) -> set[Site]:
    """Return the uses of Apex in classes that have a native twin, and those in branches that make such a class."""
    found = list(found)
    wrapped = wrappers(project, found)
    calls = {call for cls in set(wrapped.values()) for _, call in made(project, cls) or ()}
    chosen = {
        site
        for site in found
        if any(calls.intersection(arm.nodes()) for arm in around(site.module, site.node))
    }
    return chosen.union(wrapped)


def chosen_beside_native(project: Project, site: Site) -> bool:
    """Tell whether a test chooses Apex by its name for a site, and its function names native AMP too.

    As in ``if backend == "apex"`` beside ``partial(torch.autocast, ...)``.
    """
    return chosen_by_name(site) and any(
        names_native(project, site.module, n) for n in site.function.all_nodes
    )


def refuse_beside_twin(project: Project, found: Iterable[Site]) -> None:
    """Refuse a function that scales by Apex for its callers, beside one of its file that does the same natively."""
    for site in found:
        function = site.function.method
        if site.kind is not Kind.SCALE_LOSS or function.node is None or function.cls is not None:
            continue
        twin = _native_twin(project, function)
        if twin is not None:
            raise Cannot(
                "AMP912",
                *site.at,
                f"{function.name}() trains by Apex for whoever calls it, and {twin.name}() does so natively",
                f"remove {function.name}() with the choices that lead to it, and let its users call {twin.name}()",
            )


def _native_twin(project: Project, function: Function) -> Function | None:
    """Return a function of the same file that has the parameters of another, and scales a loss natively."""
    needed = set(function.parameters.names)
    for other in function.module.functions.values():
        if (
            other is function
            or other.node is None
            or other.parent is not None
            or other.cls is not None
        ):
            continue
        if needed <= set(other.parameters.names) and _scales_native(project, other):
            return other
    return None


def _scales_native(project: Project, function: Function) -> bool:
    return any(scales(project, function.module, call) for call in function.all_calls)


def _named(module: Module, name: str) -> Iterator[ast.expr]:
    yield from (n for n in module.tree.nodes(ast.Name) if n.id == name)
    yield from module.tree.attributes(name)


def _is_native(project: Project, cls: Class) -> bool:
    return any(is_native(project, cls.module, n) for n in ast.walk(cls.node))
