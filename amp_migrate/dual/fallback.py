"""Programs that choose Apex where it is installed and native AMP otherwise: what is left of them without Apex."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.availability import Availability
from amp_migrate.availability.installed import imports_apex
from amp_migrate.availability.versions import Versions
from amp_migrate.dual.arms import Arm, around, is_shut
from amp_migrate.dual.cut import Cut, Definition, Given, importing, imports_instead
from amp_migrate.dual.native import earlier, is_native, names_native
from amp_migrate.facts.paths import defs, imported_name, uses
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.project import Module, Project
from amp_migrate.project.order import inside

_SIDES = ("body", "orelse")
_HANDLER = (ast.Assign, ast.Pass, ast.Import, ast.ImportFrom)
_WHY = "the program falls back to native AMP where Apex is missing"
_BEHIND = "is never true without Apex, and goes: such a run does what it did where Apex was missing"
_OLDER = "is never true without Apex or with a torch that has native AMP, and goes: such a run does what it did there"


class _Ways(NamedTuple):
    """The imports of Apex that may fail, the arms that no run takes without it, and those of them that follow from others.

    `by_version` are the arms for which torch's version was asked too.
    """

    guards: list[tuple[Module, ast.Try]]
    arms: list[Arm]
    along: list[Arm]
    by_version: list[Arm]


def fallback(given: Given) -> Cut | None:
    """Return what goes from a unit whose program has a native way for when Apex is missing; None for others."""
    project, availability, found, everywhere = given
    modules = list(dict.fromkeys(site.module for site in found))
    sites = [s for s in everywhere if s.module in modules]
    ways = _ways(project, modules, availability, sites)
    if ways is None or not any(_leads_to_native(project, arm) for arm in ways.arms):
        return None
    return _cut(project, availability, modules, sites, ways)


def _ways(
    project: Project,
    modules: list[Module],
    availability: Mapping[Module, Availability],
    sites: list[Site],
) -> _Ways | None:
    """Return what asks in some files whether Apex is there; None where one of them does not."""
    found = _Ways([], [], [], [])
    for module in modules:
        tried = [node for node in module.tree.nodes(ast.Try) if _is_guard(node)]
        versions = Versions(project, module)
        if not availability[module].flags and not tried and not versions.asks:
            return None
        found.guards.extend((module, node) for node in tried)
        absent = availability[module].without_apex()
        dead, implied = _never(absent)
        if versions.asks:
            dead, implied = _with_native(absent.with_native(versions), dead + implied, sites)
            found.by_version.extend(dead)
        found.arms.extend([*dead, *implied])
        found.along.extend(implied)
    return found


def _cut(
    project: Project,
    availability: Mapping[Module, Availability],
    modules: list[Module],
    sites: list[Site],
    ways: _Ways,
) -> Cut | None:
    """Return what goes with the ways through Apex; None where what stays needs some of it."""
    guards, arms, along, by_version = ways
    going = {node for arm in arms for part in arm.leaving() for node in ast.walk(part)}
    going |= {n for _, guard in guards for n in ast.walk(guard)}
    tests = list(_narrowed(modules, availability, guards, going))
    going |= {n for _, test, _ in tests for n in ast.walk(test)}
    definitions = _definitions(sites, going)
    if definitions is None:
        return None
    going |= {n for _, node in definitions for n in ast.walk(node)}
    names = {node.name for _, node in definitions}
    aliases = importing(list(project.modules.values()), names, going)
    flags = _flags(modules, availability, guards, going)
    if aliases is None or flags is None or all(site.kind is Kind.IMPORT for site in sites):
        return None
    return Cut(
        _WHY,
        tuple(sites),
        tuple(arms),
        _OLDER if by_version else _BEHIND,
        definitions=definitions,
        aliases=aliases,
        guards=tuple(guards),
        flags=flags,
        along=tuple(along),
        tests=tuple(tests),
    )


def _is_guard(node: ast.Try) -> bool:
    """Tell whether a `try` imports Apex, and goes on without it: ``amp = None``, ``has_apex = False``."""
    simple = all(isinstance(s, ast.Import | ast.ImportFrom | ast.Assign) for s in node.body)
    handled = all(isinstance(s, _HANDLER) for h in node.handlers for s in h.body)
    alone = len(node.handlers) == 1 or not imports_instead(node)
    plain = simple and handled and alone and not node.orelse + node.finalbody
    return imports_apex(node.body) and plain


def _never(availability: Availability) -> tuple[list[Arm], list[Arm]]:
    """Return the branches that no run takes without Apex, those of values that only such branches set included.

    The second are those that the tests around them leave out, which ask for nothing of Apex.
    """
    module = availability.module
    tests = module.tree.nodes(ast.If, ast.IfExp)
    arms = [Arm(module, test, side) for test in tests for side in _SIDES]
    settings = _settings(module)
    dead: list[Arm] = []
    implied: list[Arm] = []
    while True:
        gone = [*dead, *implied]
        inside = {n for arm in gone for part in arm.parts() for n in ast.walk(part)}
        assumed = _unset(availability, settings, inside)
        more = [a for a in arms if a not in gone and is_shut(availability, a, assumed)]
        others = [a for a in arms if a not in (*gone, *more) and _fails(availability, a, assumed)]
        if not more + others:
            return dead, implied
        dead += more
        implied += others


def _with_native(
    availability: Availability, without: list[Arm], sites: list[Site]
) -> tuple[list[Arm], list[Arm]]:
    """Return the branches that no run takes with native AMP in torch either, where they use Apex or went before.

    Other branches for an old torch are none of Apex's, and stay.
    """
    used = {site.node for site in sites}
    dead, implied = _never(availability)

    def kept(arm: Arm) -> bool:
        return arm in without or any(n in used for part in arm.parts() for n in ast.walk(part))

    return [arm for arm in dead if kept(arm)], [arm for arm in implied if kept(arm)]


def _fails(availability: Availability, side: Arm, assumed: Assumption) -> bool:
    """Tell whether no run takes a side where it stands: the tests around it came out as they must, and still hold."""
    for arm in reversed(list(around(availability.module, side.node))):
        kept = not uses(arm.node.test) & {name for part in arm.parts() for name in defs(part)}
        if kept:
            assumed = availability.narrow(arm.node.test, arm.side == "body", assumed)
    return is_shut(availability, side, assumed)


def _narrowed(
    modules: list[Module],
    availability: Mapping[Module, Availability],
    guards: list[tuple[Module, ast.Try]],
    going: set[ast.AST],
) -> Iterator[tuple[Module, ast.expr, str]]:
    """Yield the tests that stay and ask for an import that goes, each with what is left of it."""
    for module in modules:
        without = availability[module].without_apex()
        bound = _bound(guards, module) | availability[module].flags
        for node in module.tree.nodes(ast.If, ast.IfExp, ast.While):
            if node.test not in going and bound & uses(node.test):
                left = without.reduce(node.test)
                if left.value is None and not bound & uses(ast.parse(left.text, mode="eval").body):
                    yield module, node.test, left.text


def _settings(module: Module) -> list[tuple[ast.Name, ast.Constant]]:
    """Return the assignments of constants to variables that get nothing else."""
    plain = {
        target: node.value
        for node in module.tree.nodes(ast.Assign)
        if isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    others = {
        node.id
        for node in module.tree.nodes(ast.Name)
        if isinstance(node.ctx, ast.Store) and node not in plain
    }
    return [(target, value) for target, value in plain.items() if target.id not in others]


def _unset(
    availability: Availability, settings: list[tuple[ast.Name, ast.Constant]], inside: set[ast.AST]
) -> Assumption:
    """Return what is known of variables once the assignments in branches that go are never made."""
    kept = {(target.id, value.value) for target, value in settings if target not in inside}
    found = NOTHING
    for target, value in settings:
        if target in inside and (target.id, value.value) not in kept:
            name = ast.Name(target.id, ast.Load())
            equal = ast.copy_location(ast.Compare(name, [ast.Eq()], [value]), target)
            found = availability.assume(equal, False, found)
    return found


def _leads_to_native(project: Project, arm: Arm) -> bool:
    """Tell whether another branch of the chain that a branch is of sets native AMP up, before it or behind it."""
    module, rest = arm.module, arm.node.orelse
    leaving = {n for part in arm.parts() for n in ast.walk(part)}
    chain = [*(rest if isinstance(rest, list) else []), *earlier(module.tree, arm.node)]
    nodes = [n for stmt in chain for n in ast.walk(stmt) if n not in leaving]
    return any(is_native(project, module, n) or names_native(project, module, n) for n in nodes)


def _definitions(
    sites: list[Site], going: set[ast.AST]
) -> tuple[tuple[Module, Definition], ...] | None:
    """Return the definitions that use Apex outside of what goes; None where such a use stands in none."""
    wanted: dict[Definition, Module] = {}
    for site in sites:
        if site.node in going:
            continue
        outer = _definition(site)
        if outer is None:
            return None
        wanted[outer] = site.module
    return tuple((module, node) for node, module in wanted.items())


def _definition(site: Site) -> Definition | None:
    for node in site.module.tree.module.body:
        if isinstance(node, Definition) and inside(site.module.tree, site.node, node):
            return node
    return None


def _flags(
    modules: list[Module],
    availability: Mapping[Module, Availability],
    guards: list[tuple[Module, ast.Try]],
    going: set[ast.AST],
) -> tuple[tuple[Module, str], ...] | None:
    """Return the flags that what stays reads; None where it reads an import that goes."""
    found = []
    for module in modules:
        loads = [n for n in module.tree.nodes(ast.Name) if isinstance(n.ctx, ast.Load)]
        read = {n.id for n in loads if n not in going}
        instead = [g for owner, g in guards if owner is module and imports_instead(g)]
        set_there = {name for g in instead for s in g.handlers[0].body for name in defs(s)}
        if read & _bound(guards, module) or (
            instead and read & availability[module].flags - set_there
        ):
            return None
        found += [(module, name) for name in sorted(read & availability[module].flags)]
    return tuple(found)


def _bound(guards: list[tuple[Module, ast.Try]], module: Module) -> set[str]:
    return {
        imported_name(alias)
        for owner, guard in guards
        if owner is module
        for node in guard.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
