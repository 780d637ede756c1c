"""Programs that share helpers with one that becomes native: those without AMP hand in a GradScaler that is off."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.project import CallSite, Function, Module, Project
from amp_migrate.project.programs import beside
from amp_migrate.project.reach import upwards


class Without:
    """Tells which functions only run in programs that never initialize, whose files are all seen.

    Under Apex a `scale_loss` raises there, so that they take the ways past it.
    """

    def __init__(self, project: Project, sites: Iterable[Site]) -> None:
        self._project = project
        self._starting = {site.module.path for site in sites if site.kind is Kind.INITIALIZE}
        self._known: dict[Function, bool] = {}

    def __contains__(self, function: object) -> bool:
        if not isinstance(function, Function):
            return False
        found = self._known.get(function)
        if found is None:
            found = self._known[function] = self._never(function)
        return found

    def _never(self, function: Function) -> bool:
        """Tell whether every way to a function starts in code of files that no program runs together with an initialize."""
        programs: set[Module] = set()
        for caller in upwards(self._project, function):
            if caller.node is None:
                programs.add(caller.module)
            elif not self._project.callers(caller) or any(self._project.escapes(caller)):
                return False
        return bool(programs) and not any(
            self._starting & beside(self._project, program.path) for program in programs
        )


@dataclass(slots=True)
class Beside:
    """The programs beside those that get the GradScaler.

    Those `without` AMP hand in `off`, where that is set, and `lending` are the functions that do. The calls `uncast`, for
    which AMP is switched off, hand it in as well, to the functions `borrowing`. Programs in the files `leaving` keep
    Apex: their calls lack the argument, which is an error as soon as they come to one of `lacking`.
    """

    without: Container[Function] = ()
    off: str = ""
    uncast: frozenset[ast.Call] = frozenset()
    borrowing: frozenset[Function] = frozenset()
    leaving: frozenset[str] = frozenset()
    lending: set[Function] = field(default_factory=set)
    lacking: set[ast.Call] = field(default_factory=set)
    before: dict[ast.stmt, Function] = field(default_factory=dict)

    def lent(self, call: CallSite, name: str) -> str:
        """Return what a call hands in that has no scaler, empty where it has one.

        What a loop of a function hands in again and again is made once, by `name`, `before` the loop.
        """
        if self.off and call.call in self.uncast:
            return self.off
        if not self.off or call.function not in self.without:
            return ""
        self.lending.add(call.function)
        loop = _outermost_loop(call)
        if loop is None or call.function.node is None or _knows(call.function, name):
            return self.off
        self.before[loop] = call.function
        return name

    def lacks(self, call: CallSite) -> bool:
        """Tell whether a call belongs to a program that keeps Apex."""
        stays = call.function.module.path in self.leaving
        if stays:
            self.lacking.add(call.call)
        return stays


def _outermost_loop(call: CallSite) -> ast.stmt | None:
    """Return the loop of its function in which a call stands, the outermost one."""
    loops = []
    for up in call.function.module.tree.ancestors(call.call):
        if up is call.function.node:
            break
        loops += [up] if isinstance(up, ast.For | ast.AsyncFor | ast.While) else []
    return loops[-1] if loops else None


def _knows(function: Function, name: str) -> bool:
    """Tell whether a name means something to a function already."""
    scopes = function.module.scopes
    return scopes.find(function.scope, name) is not None or any(
        isinstance(node, ast.Name) and node.id == name for node in function.all_nodes
    )
