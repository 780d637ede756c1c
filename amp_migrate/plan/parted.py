"""Programs that share code: what is left in one does not keep the others from being migrated."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.closure import closure
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.lacking import lacking
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, Place
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.programs import programs


class Parted(NamedTuple):
    """The sites that stay with one program, those of the others, and the files that only the first one runs."""

    stay: list[Site]
    go: list[Site]
    files: frozenset[str]


def parted(project: Project, found: list[Site], cause: Cannot) -> Parted | None:
    """Part the programs that run the cause of a refusal from the others of a unit; None where none is left."""
    ran = programs(project, {site.module for site in found})
    others = [files for files in ran.values() if cause.module.path not in files]
    own = set().union(*ran.values()).difference(*others)
    stay = [site for site in found if site.module.path in own]
    go = [site for site in found if site.module.path not in own]
    if not stay or not any(site.kind is Kind.INITIALIZE for site in go):
        return None
    return Parted(stay, go, frozenset(own))


def only_left(project: Project, left: Collection[Module], edited: Collection[str]) -> set[str]:
    """Return the files that only programs run in which uses of Apex are left and none is migrated, and the `left` without edits."""
    own = {module.path for module in left}.difference(edited)
    ran = programs(project, left).values() if own else []
    others = [files for files in ran if own.isdisjoint(files) or not files.isdisjoint(edited)]
    return own | set().union(*ran).difference(*others).difference(edited)


def run_beside(project: Project, left: Collection[Module]) -> set[str]:
    """Return the files of all programs that run some of the files in which Apex is left."""
    ran = programs(project, left).values() if left else []
    paths = {module.path for module in left}
    return paths.union(*(files for files in ran if not paths.isdisjoint(files)))


def refuse_silent(unit: Unit, decisions: Iterable[Decision]) -> None:
    """Refuse a program that stays and comes to what is migrated without lacking the GradScaler on the way.

    Where it lacks it, as an argument that its call does not have, Python says so before anything trains.
    """
    home, project = unit.home, unit.project
    for decision in decisions:
        if any(path in home.beside.leaving for path, _ in decision.edits):
            raise _silent(unit, unit.functions[0])
    migrated = {*home.users, *unit.functions}

    def called(function: Function) -> Iterator[Function]:
        for node in function.calls if not _lacks_attribute(unit, function) else ():
            if not _lacks(unit, function, node):
                yield from project.callees(node)

    staying = (f for f in project.functions() if f.module.path in home.beside.leaving)
    for function in closure(staying, called):
        if function in migrated and not _lacks_attribute(unit, function):
            raise _silent(unit, function)


def _lacks(unit: Unit, function: Function, call: ast.Call) -> bool:
    """Tell whether a call lacks the GradScaler, or the partial object that it runs."""
    lacking = unit.home.beside.lacking
    made = [kept for _, kept in unit.project.values.kept_by(function.module, call.func)]
    return call in lacking or (bool(made) and all(kept in lacking for kept in made))


def _lacks_attribute(unit: Unit, function: Function) -> bool:
    """Tell whether a method reads the GradScaler from its object, to which no program that stays gives one."""
    home, cls = unit.home, function.cls
    if cls is None or home.resolved.get(function) != home.attribute(function):
        return False
    made = [c for c in (cls, *cls.subclasses()) if c.module.path in home.beside.leaving]
    others = [c for c in (cls, *cls.subclasses()) if c not in made]
    having = home.keepers.union(lacking(home))
    bases = {base for c in made for base in c.mro()}
    given = not having.isdisjoint(bases) or any("__getattr__" in base.methods for base in bases)
    return bool(made) and not given and not any(_is_made(unit, c) for c in others)


def _is_made(unit: Unit, cls: Class) -> bool:
    """Tell whether a program that stays makes an object of a class."""
    calls = unit.project.nodes(ast.Call)
    staying = (call for m, call in calls if m.path in unit.home.beside.leaving)
    return any(cls in unit.project.constructed(call) for call in staying)


def _silent(unit: Unit, function: Function) -> Cannot:
    paths = sorted(unit.home.beside.leaving)
    first = function.node or function.module.tree.module.body[0]
    place = Place(function.module.path, function.module.tree.span(first))
    return Cannot(
        "AMP901",
        *function.at(first),
        f"{', '.join(paths)} keeps Apex, and runs what would be native here",
        f"migrate {', '.join(paths)} by hand first, then run again",
        (place,),
    )
