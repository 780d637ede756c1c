"""Programs that share code: what is left in one does not keep the others from being migrated."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePath
from typing import NamedTuple

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.closure import closure
from amp_migrate.placement.finding.build import Index
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.lacking import lacking
from amp_migrate.plan.answers import Answer
from amp_migrate.plan.cannot import Cannot, spoken
from amp_migrate.plan.model import Decision, Place
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.imported import coming
from amp_migrate.project.programs import beside, programs
from amp_migrate.rules.autocast import amp104_autocast, amp107_evaluation, amp120_library_forward
from amp_migrate.rules.autocast.programs import Near, may_run, staying

_CASTS = frozenset(
    rule.RULE.code for rule in (amp104_autocast, amp107_evaluation, amp120_library_forward)
)


class Parted(NamedTuple):
    """The sites that stay with one program, those of the others, and the files that only the first one runs."""

    stay: list[Site]
    go: list[Site]
    files: frozenset[str]


def parted(project: Project, found: list[Site], cause: Cannot) -> Parted | None:
    """Part the programs that run the cause of a refusal from the others of a unit; None where none is left."""
    ran = programs(project, {site.module for site in found})
    kept, where = cause.program, cause.module.path
    others = [
        f for program, f in ran.items() if where not in f or (kept and program.path not in kept)
    ]
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
    home = unit.home
    for decision in decisions:
        if any(path in home.beside.leaving for path, _ in decision.edits):
            raise _silent(unit, unit.functions[0])
    migrated = {*home.users, *unit.functions}
    for function in _come_to(unit):
        if function in migrated:
            raise _silent(unit, function)


def _come_to(unit: Unit) -> list[Function]:
    """Return what the programs that leave the unit come to without lacking the GradScaler on the way."""
    leaving, project = unit.home.beside.leaving, unit.project

    def called(function: Function) -> Iterator[Function]:
        for node in function.calls if not _lacks_attribute(unit, function) else ():
            if not _lacks(unit, function, node):
                yield from project.callees(node)

    begin = (f for f in project.functions() if f.module.path in leaving)
    return [f for f in closure(begin, called) if not _lacks_attribute(unit, f)]


def refuse_cast(unit: Unit, decisions: Iterable[Decision]) -> None:
    """Refuse casts in what a program runs that keeps Apex: it would cast there twice, and more than Apex does.

    One that lacks the GradScaler on the way there does not come to them.
    """
    beside = unit.home.beside
    come_to = set(_come_to(unit)) if beside.leaving else set[Function]()
    for function, made in _cast(unit.project, decisions) if beside.kept else ():
        called = function in come_to or not unit.project.callers(function)
        found = staying(unit, function)
        site = next((s for s in found if called or s.module.path not in beside.leaving), None)
        if site is not None:
            kept, line = PurePath(site.module.path).name, made.finding.span.line
            first = next((n for n in function.own_nodes if getattr(n, "lineno", 0) == line), None)
            raise Cannot(
                "AMP901",
                *function.at(first or function.module.tree.module.body[0]),
                f"Apex stays at {site.place}, and what it trains runs {spoken(function)} as well, where an autocast block for this "
                "training would change what Apex does",
                f"change what keeps Apex in {kept}, as its findings say, or give each program a function of its own here",
                (site.place,),
            )


def _cast(project: Project, decisions: Iterable[Decision]) -> Iterator[tuple[Function, Decision]]:
    """Yield the functions in which decisions put something under autocast, with these."""
    for decision in decisions:
        finding = decision.finding
        if decision.edits and finding.code in _CASTS:
            around = project.modules[finding.path].functions.values()
            holders = [f for f in around if f.spans(finding.span.line)]
            yield max(holders, key=lambda f: f.node.lineno if f.node is not None else 0), decision


class Neighbours:
    """What the units of a project know of each other: which of their programs keep Apex, and which cast alike what they share."""

    def __init__(self, index: Index) -> None:
        self._project = index.project
        self._every = [site for site in index.sites if site.kind is Kind.INITIALIZE]
        self._kept: set[Site] = set()
        self._unlike: set[tuple[Site, Site]] = set()

    def near(self, found: list[Site], leaving: frozenset[str]) -> Near:
        """Return the programs of other units that share files with one."""
        own = {site for site in found if site.kind is Kind.INITIALIZE}
        files = beside(self._project, *(site.module.path for site in own))
        others = [
            site
            for site in self._every
            if site not in own and not files.isdisjoint(beside(self._project, site.module.path))
        ]
        unlike = {other for site, other in self._unlike if site in own}
        kept = {
            s
            for s in others
            if (s in self._kept or s.module.path in leaving) and not self._meet(s, own)
        }
        return Near(leaving, frozenset(others) - unlike - kept, frozenset(kept))

    def _meet(self, site: Site, own: Collection[Site]) -> bool:
        """Tell whether one run may come to an initialize and to one of some others."""
        come = coming(self._project, [(site.function, site.node)]).functions
        others = (coming(self._project, [(s.function, s.node)]).functions for s in own)
        return not all(come.isdisjoint(other) for other in others)

    def learn(self, answers: list[Answer]) -> bool:
        """Take in what becomes of all units; tell whether anything was not known."""
        before = len(self._kept), len(self._unlike)
        inits = [[s for s in a.sites if s.kind is Kind.INITIALIZE] for a in answers]
        self._kept |= {
            s for a, own in zip(answers, inits, strict=True) if a.gone is None for s in own
        }
        made = [{edit for d in a.decisions for edit in d.edits} for a in answers]
        for answer, own in zip(answers, inits, strict=True):
            places = list(_cast(self._project, answer.decisions))
            for other, edits in zip(inits, made, strict=True):
                if other is not own and any(
                    not edits.issuperset(cast.edits) and may_run(self._project, site, function)
                    for function, cast in places
                    for site in other
                ):
                    self._unlike |= {(a, b) for a in own for b in other}
        return before != (len(self._kept), len(self._unlike))


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
