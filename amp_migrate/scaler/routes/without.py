"""Programs that share helpers with one that becomes native: those without AMP hand in a GradScaler that is off."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.flow import NOTHING, evaluate, refine
from amp_migrate.project import CallSite, Function, Project
from amp_migrate.project.programs import beside, files_of, run_by
from amp_migrate.project.reach import upwards

_PROGRAM = ast.parse("__name__ == '__main__'", mode="eval").body
_IMPORTED = refine(NOTHING, _PROGRAM, False) or NOTHING


@dataclass(frozen=True, slots=True)
class _Ways:
    """Where the ways to some code start: as the program of some files, or wherever one of some files is imported too."""

    programs: frozenset[str]
    imported: frozenset[str]


class Without:
    """Tells which functions only run in programs that never initialize, whose files are all seen.

    Under Apex a `scale_loss` raises there, so that they take the ways past it.
    """

    def __init__(self, project: Project, sites: Iterable[Site]) -> None:
        self._project = project
        self._starting = [site for site in sites if site.kind is Kind.INITIALIZE]
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
        ways = self._ways(function, None)
        if ways is None or not (ways.programs or ways.imported):
            return False
        near = beside(self._project, *ways.imported)
        return not any(
            site.module.path in near or any(self._begins(site, path) for path in ways.programs)
            for site in self._starting
        )

    def _begins(self, site: Site, program: str) -> bool:
        """Tell whether a program may initialize at a site that it, or what it imports, holds.

        What it loads by a name that it works out may be called by any name, too.
        """
        if site.module.path not in run_by(self._project, program):
            return False
        files = files_of(self._project, self._project.modules[program])
        if site.module.path not in files:
            return True
        ways = self._ways(site.function, site.node)
        return ways is None or program in ways.programs or not files.isdisjoint(ways.imported)

    def _ways(self, function: Function, node: ast.AST | None) -> _Ways | None:
        """Return where the ways to a function start, or to a node of it; None where not all of them are seen."""
        above = upwards(self._project, function)
        if any(
            not self._project.callers(f) or any(self._project.escapes(f))
            for f in above
            if f.node is not None
        ):
            return None
        leading = {site.call: site.function for f in above for site in self._project.callers(f)} | (
            {node: function} if node is not None else {}
        )
        tops = {f for f in above if f.node is None}
        alone = {
            f
            for f in tops
            if (f is not function or node is not None)
            and all(_runs_as_program(f, n) for n, home in leading.items() if home is f)
        }
        return _Ways(
            frozenset(f.module.path for f in alone), frozenset(f.module.path for f in tops - alone)
        )


def _runs_as_program(top: Function, node: ast.AST) -> bool:
    """Tell whether top-level code is left out where its file is imported."""
    return any(
        evaluate(branch.test, _IMPORTED) is (not holds)
        for branch, holds in top.module.tree.sides(node)
    )


@dataclass(slots=True)
class Beside:
    """The programs beside those that get the GradScaler.

    Those `without` AMP hand in `off`, where that is set, and `lending` are the functions that do. The calls `uncast`, for
    which AMP is switched off, hand it in as well, to the functions `borrowing`. Programs in the files `leaving` keep
    Apex: their calls lack the argument, which is an error as soon as they come to one of `lacking`. What initializes Apex
    in other programs is `kept` where those keep it, and `alike` where they cast what they share as the unit does.
    """

    without: Container[Function] = ()
    off: str = ""
    uncast: frozenset[ast.Call] = frozenset()
    borrowing: frozenset[Function] = frozenset()
    leaving: frozenset[str] = frozenset()
    alike: frozenset[Site] = frozenset()
    kept: frozenset[Site] = frozenset()
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
