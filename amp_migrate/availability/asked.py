"""Flags by which those who call a library ask for AMP, where no program in sight does: ``Engine(model, fp16=True)``."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.paths import path, sets, spreads
from amp_migrate.project import CallSite, Class, Function, Project
from amp_migrate.project.reach import where_set
from amp_migrate.project.relatives import family

_SERVED = (Kind.SCALE_LOSS, Kind.MASTER_PARAMS)


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """A function, or the constructor of a class, whose parameter `flag` says whether Apex scales.

    `calls` are those in sight, which all leave the flag off.
    """

    function: Function
    flag: str
    calls: int

    @property
    def keeps(self) -> bool:
        """Whether the scaler becomes an attribute of the object."""
        return self.function.name == "__init__"


def entries(project: Project, found: Iterable[Site]) -> dict[Function, Entry]:
    """Return the entry of each function that scales; none at all where one is without.

    The flag must be off by default, never assigned, and left off by at least one call and by all: so whoever
    turns it on is out of sight, as is the `amp.initialize` that must have run before.
    """
    result: dict[Function, Entry] = {}
    for site in found:
        if site.kind in _SERVED:
            entry = result.get(site.function) or _entry(project, site)
            if entry is None:
                return {}
            result[site.function] = entry
    merged = {entry.function: entry for entry in result.values()}
    return {function: merged[entry.function] for function, entry in result.items()}


def _entry(project: Project, site: Site) -> Entry | None:
    function = site.function
    if function.node is None or function.parent is not None:
        return None
    for up, holds in site.module.tree.sides(site.node):
        flag = path(up.test) if holds else None
        taker = _taker(project, function, flag) if flag is not None else None
        if taker is not None:
            return _left_off(project, *taker)
    return None


def _taker(project: Project, function: Function, flag: str) -> tuple[Function, str] | None:
    """Return the function that takes a flag as a parameter, and its name there."""
    if flag in function.parameters.names and project.family(function) == [function]:
        return (function, flag) if not sets(function.scope, flag) else None
    first = next(iter(function.parameters.names), None)
    receiver, _, attribute = flag.rpartition(".")
    if function.cls is None or function.is_static or receiver != first:
        return None
    init = _constructor(function.cls)
    stores = list(_attributes(project, function, attribute))
    if init is None or init.node is None or len(stores) != 1:
        return None
    stmt = stores[0]
    if stmt not in init.node.body or not isinstance(stmt.value, ast.Name):
        return None
    name = stmt.value.id
    if name not in init.parameters.names or sets(init.scope, name):
        return None
    return init, name


def _constructor(cls: Class) -> Function | None:
    """Return the constructor of the objects of a class: its own, that of a base, or the only one of what inherits a mixin."""
    own = cls.method("__init__")
    below = {init for sub in cls.subclasses() if (init := sub.method("__init__")) is not None}
    return own or (below.pop() if len(below) == 1 else None)


def _attributes(project: Project, function: Function, name: str) -> Iterable[ast.Assign]:
    """Yield the statements that may assign an attribute of the objects of a method's class."""
    own = family(function.cls) if function.cls is not None else []
    for module, node in where_set(project, name):
        holder = project.function_of(module, node)
        around = holder.class_around
        if path(node.value) in holder.receivers and around is not None and around not in own:
            continue
        stmt = module.tree.statement(node)
        yield stmt if isinstance(stmt, ast.Assign) else ast.Assign([], ast.Constant(None))


def _left_off(project: Project, function: Function, flag: str) -> Entry | None:
    """Return the entry if the flag is off by default, and by every call in sight, of which there is one."""
    if function.parameters.vararg is not None or not _is_off(
        function.parameters.defaults.get(flag)
    ):
        return None
    calls = project.callers(function)
    if not calls or not all(_leaves_off(project, call, function, flag) for call in calls):
        return None
    return Entry(function, flag, len(calls))


def _leaves_off(project: Project, site: CallSite, function: Function, flag: str) -> bool:
    if spreads(site.call) or site.partial:
        return False
    given = project.arguments(site, function)
    return flag not in given or _is_off(given[flag])


def _is_off(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and not node.value
