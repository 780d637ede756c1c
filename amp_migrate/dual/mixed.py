"""Apex and native AMP side by side, where it is not clear which of the two runs when."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.autocast.adopted import adopted
from amp_migrate.availability.availability import Availability
from amp_migrate.dual.arms import Arm, around, is_shut, runs, shut, unbound
from amp_migrate.dual.native import beside_native, is_native, makes_scaler, mentions_native
from amp_migrate.dual.search import Search
from amp_migrate.plan.cannot import Cannot, spoken
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.programs import programs


def refuse_doubled(project: Project, found: list[Site]) -> None:
    """Raise `Cannot` where native AMP stands in the very functions that use Apex: it would be there twice."""
    for function in dict.fromkeys(site.function for site in found if site.kind is not Kind.VALUE):
        kept = _adopted(project, function, found)
        for node in function.own_nodes:
            if (
                is_native(project, function.module, node)
                and node not in kept
                and project.function_of(function.module, node) is function
            ):
                raise Cannot(
                    "AMP912",
                    *function.at(node),
                    f"{spoken(function)} uses both native AMP and Apex, and it is not known which of the two runs when",
                    "delete one of the two here, then run again",
                )


def _adopted(project: Project, function: Function, found: list[Site]) -> set[ast.AST]:
    """Return what opens the autocasts under which the losses that Apex scales are computed: they stay."""
    scaled = [s for s in found if s.kind is Kind.SCALE_LOSS and s.function is function]
    blocks = [adopted(project, function, s.call.args[0], s.node) for s in scaled if s.call.args]
    return {item.context_expr for block in blocks if block for item in block.items}


def not_apart(
    project: Project, availability: Mapping[Module, Availability], found: list[Site]
) -> Cannot:
    """Return why the branches for Apex of a unit that has native AMP beside some of them cannot go."""
    beside = {site: arm for site in found if (arm := beside_native(project, site)) is not None}
    chosen: list[Arm] = []
    search = Search(project, availability, found)
    whole = search.settle()
    lacking = without_native(project, search.raising) if whole else None
    if lacking is not None:
        return Cannot(
            "AMP912",
            lacking.module,
            lacking.node,
            "programs that choose Apex here have no native AMP to choose, and share code with others that have",
            "delete what uses Apex here and keep native AMP, or make a GradScaler here under a test, then run again",
        )
    for site in sorted(found, key=lambda s: s.node is not search.stuck):
        known = availability[site.module]
        arm = beside.get(site) or _shut_with(known, site, [*beside.values()])
        if arm is None:
            return Cannot(
                "AMP912",
                *site.at,
                "the files given have native AMP too, and no test here chooses between it and this use of Apex",
                "delete what uses Apex here and keep native AMP, or put it under the test that chooses Apex, then run again",
            )
        chosen.append(arm)
    return _read_outside(chosen) or _shared_switch(project, availability, chosen) or _needed(chosen)


def without_native(project: Project, raising: list[Arm]) -> Arm | None:
    """Return a branch that initializes Apex in programs without native AMP, where other files initialize it too.

    Several programs do not share the native way of one.
    """
    homes = {arm.module: arm for arm in raising}
    if len(homes) < 2:
        named = any(mentions_native(project, module) for module in project.modules.values())
        return None if named else next(iter(homes.values()), None)
    ran = programs(project, homes).values()
    for home, arm in homes.items():
        own = (files for files in ran if home.path in files)
        chosen = mentions_native(project, home) or all(_makes_scaler(project, f) for f in own)
        if not chosen:
            return arm
    return None


def _makes_scaler(project: Project, files: Iterable[str]) -> bool:
    return any(makes_scaler(project, project.modules[path]) for path in sorted(files))


def _shut_with(known: Availability, site: Site, chosen: list[Arm]) -> Arm | None:
    """Return the branch around a use of Apex that no run takes where one of those that choose Apex is not taken."""
    for arm in around(site.module, site.node):
        if any(is_shut(known, arm, shut(known, other)) for other in chosen):
            return arm
    return None


def _read_outside(chosen: list[Arm]) -> Cannot | None:
    """What a branch for Apex sets may be read in another one."""
    gone = {n for arm in chosen for part in arm.parts() for n in ast.walk(part)}
    for module, name in unbound(dict.fromkeys(arm.module for arm in chosen), gone):
        return Cannot(
            "AMP912",
            module,
            name,
            f"`{name.id}` is read here, and set only in a branch for Apex that would go",
            f"set `{name.id}` for native AMP as well, or delete what reads it, then run again",
        )
    return None


def _shared_switch(
    project: Project, availability: Mapping[Module, Availability], chosen: list[Arm]
) -> Cannot | None:
    """Runs that choose native AMP must not come by what raises."""
    for arm in chosen:
        if needed_by_native(project, availability[arm.module], arm):
            return Cannot(
                "AMP912",
                arm.module,
                arm.node,
                f"amp.initialize runs under `{ast.unparse(arm.node.test)}`, which native AMP needs to hold as well",
                "delete this branch and keep the native one, then run again",
            )
    return None


def _needed(chosen: list[Arm]) -> Cannot:
    arm = chosen[0]
    return Cannot(
        "AMP912",
        arm.module,
        arm.node,
        f"code outside of the branch by `{ast.unparse(arm.node.test)}` needs what Apex does in it",
        "delete this branch and what needs it, and keep native AMP, then run again",
    )


def needed_by_native(project: Project, availability: Availability, arm: Arm) -> bool:
    """Tell whether some native AMP of a file only runs where a branch is taken."""
    without = shut(availability, arm)
    module = availability.module
    return any(
        is_native(project, module, node) and not runs(availability, node, without)
        for node in module.tree.nodes(ast.Call)
    )
