"""Programs that try to initialize Apex and turn to native AMP where that raises: the handler is what is left of them."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.availability import Availability
from amp_migrate.availability.installed import imports_apex
from amp_migrate.dual.arms import Arm, is_shut, unbound
from amp_migrate.dual.cut import Cut, Given
from amp_migrate.dual.native import beside_native, is_native
from amp_migrate.facts.paths import path
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.project import Module, Project

_WHY = "the program turns to native AMP where Apex cannot be initialized"
_CATCHING = frozenset({"BaseException", "Exception", "NameError"})


def tried(given: Given) -> Cut | None:
    """Return what goes from a unit whose every initialize stands in a `try` that sets native AMP up where it raises."""
    project, availability, found, everywhere = given
    tries: dict[ast.Try, tuple[Module, int]] = {}
    for site in found:
        if site.kind is Kind.INITIALIZE:
            around = _around(project, site)
            if around is None:
                return None
            tries[around[0]] = site.module, around[1]
    gone = {n for node, (_, kept) in tries.items() for n in _going(node, kept)}
    arms: list[Arm] = []
    for site in found if tries else ():
        if site.node in gone:
            continue
        arm = beside_native(project, site)
        known = availability[site.module]
        if arm is None or not is_shut(known, arm, _set_up(known, site.module, tries)):
            return None
        arms.append(arm)
        gone |= set(arm.nodes())
    modules = dict.fromkeys(site.module for site in found)
    if not tries or next(unbound(modules, gone), None) is not None:
        return None
    return Cut(
        _WHY,
        tuple(s for s in everywhere if s in found or s.node in gone),
        tuple(dict.fromkeys(arms)),
        "chooses between two no more: a run with AMP has the native one",
        tries=tuple((module, node, kept) for node, (module, kept) in tries.items()),
    )


def _around(project: Project, site: Site) -> tuple[ast.Try, int] | None:
    """Return the `try` that begins with an initialize, and which of its handlers sets native AMP up."""
    node = site.module.tree.parent(site.statement)
    if not isinstance(node, ast.Try) or site.statement not in node.body:
        return None
    before = node.body[: node.body.index(site.statement)]
    if node.orelse or node.finalbody or not all(imports_apex([stmt]) for stmt in before):
        return None
    for number, handler in enumerate(node.handlers):
        if _catches(handler):
            parts = [n for stmt in handler.body for n in ast.walk(stmt)]
            told = any(isinstance(n, ast.Name) and n.id == handler.name for n in parts)
            native = any(is_native(project, site.module, n) for n in parts)
            return (node, number) if native and not told else None
    return None


def _catches(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler catches that a name of Apex is not bound."""
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any((path(kind) or "") in _CATCHING for kind in kinds)


def _going(node: ast.Try, kept: int) -> set[ast.AST]:
    """Return what goes of a `try` of which a handler stays."""
    stays = {n for stmt in node.handlers[kept].body for n in ast.walk(stmt)}
    return {n for n in ast.walk(node) if n not in stays}


def _set_up(
    known: Availability, module: Module, tries: Mapping[ast.Try, tuple[Module, int]]
) -> Assumption:
    """Return what is known of a run in which a handler made its objects: none of them is None."""
    found = NOTHING
    for node, (owner, kept) in tries.items():
        for stmt in node.handlers[kept].body if owner is module else ():
            if isinstance(stmt, ast.Assign) and isinstance(stmt.value, ast.Call):
                for target in stmt.targets:
                    test = ast.Compare(target, [ast.Is()], [ast.Constant(None)])
                    test = ast.copy_location(test, target)
                    found = known.assume(test, False, known.assume(target, True, found))
    return found
