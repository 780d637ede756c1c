"""Programs with a native way of their own: what no run reaches once choosing Apex raises."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.availability import Availability
from amp_migrate.availability.choosing import announces, answers, chooses, may_be_off, only_sets
from amp_migrate.dual.arms import Arm, around, runs, shut
from amp_migrate.dual.cut import Cut, Given, importing
from amp_migrate.dual.mixed import needed_by_native, without_native
from amp_migrate.dual.native import beside_native, is_native
from amp_migrate.dual.search import Search
from amp_migrate.dual.twins import chosen_beside_native, with_twins
from amp_migrate.project import Module, Project

_WHY = "native AMP stands beside it"
_BEHIND = "goes: such a run ends in the error for a choice that is not known"


def unreachable(given: Given) -> Cut | None:
    """Return what goes from a unit that has native AMP beside each scale_loss; None where that is not certain.

    Apex raises where it is used without amp.initialize. So a branch that always uses it is only entered by
    runs that initialized, and those raise from now on; what stays is what all other runs did before.
    """
    project, availability, found, _ = given
    scaled = [s for s in found if s.kind is Kind.SCALE_LOSS]
    initialized = [s for s in found if s.kind is Kind.INITIALIZE]
    twins = with_twins(project, found)
    if not all(s in twins or _has_native(project, availability[s.module], s) for s in scaled):
        return None
    if any(
        may_be_off(s) and s not in twins and beside_native(project, s) is None for s in initialized
    ):
        return None
    if not scaled and not all(chosen_beside_native(project, s) for s in initialized):
        return None
    search = Search(project, availability, found)
    if not search.settle() or not search.covers(found):
        return None
    return _cut(given, search)


def _cut(given: Given, search: Search) -> Cut | None:
    """Return what a search found, where nothing that stays depends on it."""
    project, availability, _, everywhere = given
    guards = tuple(
        (m, node) for m in search.modules for node in m.tree.nodes(ast.Try) if announces(node)
    )
    gone = search.gone() | {n for _, guard in guards for n in ast.walk(guard)}
    names = {node.name for _, node in search.definitions}
    aliases = importing(list(project.modules.values()), names, gone)
    if aliases is None or not _independent(project, availability, search.raising, gone):
        return None
    if without_native(project, search.raising) is not None:
        return None
    noticed = tuple(arm for arm in search.arms if _raises_else(arm.node))
    raising = [] if noticed else [arm.node.test for arm in search.raising]
    choosing = [arm for m in search.modules for arm in _choosing(availability[m], raising, gone)]
    gone |= {node for arm in choosing for node in arm.nodes()}
    empty = search.empty()
    for m in search.modules:
        known = answers(availability[m], [s for s in everywhere if s.module is m])
        if chooses(known, m, gone | empty, raising):
            return None
    return Cut(
        _WHY if noticed else f"{_WHY}, and choosing Apex raises",
        tuple(s for s in everywhere if s in search.found or s.node in gone),
        (*search.arms, *choosing),
        _BEHIND,
        raising=() if noticed else tuple(search.raising),
        along=tuple(choosing),
        noticed=noticed,
        definitions=tuple(search.definitions),
        aliases=aliases,
        guards=guards,
    )


def _choosing(
    availability: Availability, raising: list[ast.expr], gone: set[ast.AST]
) -> Iterator[Arm]:
    """Yield the branches that choose what raises now for Apex being installed alone, without being asked for it."""
    absent = availability.without_apex()
    for node in availability.module.tree.nodes(ast.If):
        if node not in gone and raising and absent.known(node.test) is False:
            if only_sets(node.body, raising):
                yield Arm(availability.module, node, "body")


def _has_native(project: Project, availability: Availability, site: Site) -> bool:
    """Tell whether a scale_loss has native AMP beside it: in another branch, or under a test of its own."""
    if beside_native(project, site) is not None:
        return True
    native = [n for n in site.function.own_nodes if _scales(project, site.module, n)]
    apart = [n for n in native if any(around(site.module, n))]
    for arm in around(site.module, site.node):
        without = shut(availability, arm)
        if any(runs(availability, n, without) for n in apart):
            return True
    return False


def _scales(project: Project, module: Module, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == "scale" and is_native(project, module, node)


def _independent(
    project: Project,
    availability: Mapping[Module, Availability],
    raising: list[Arm],
    gone: set[ast.AST],
) -> bool:
    """Tell whether native AMP runs without what raises: it stands in no branch that goes, nor under its test."""
    for module, node in project.nodes(ast.Call):
        if node in gone and is_native(project, module, node):
            return False
    return not any(needed_by_native(project, availability[a.module], a) for a in raising)


def _raises_else(node: ast.If | ast.IfExp) -> bool:
    """Tell whether a value that no test of the chain knows ends in an error."""
    while isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
    rest = node.orelse if isinstance(node, ast.If) else []
    return any(isinstance(stmt, ast.Raise) for stmt in rest)
