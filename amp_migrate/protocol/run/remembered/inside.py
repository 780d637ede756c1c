"""Calls that make what a method makes which does nothing else: ``super().build(options)``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property

from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.flow.cfg.points import EdgeKind, Point
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program

Into = Callable[[ast.Call, Function, Assumption], Assumption]
Kept = Callable[[Point, Assumption], Assumption]


class Inside:
    """Knows by which call of which method a call of that runs a function."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._project = program.project
        self._known: dict[tuple[ast.Call, Function], tuple[Function, ast.Call] | None] = {}

    def begun(
        self, call: ast.Call, callee: Function, known: Assumption, into: Into, kept: Kept
    ) -> Assumption | None:
        """Return what is known where a function begins that a method makes a call run; None where the call runs it itself.

        `into` tells what a call says to a function, and `kept` what is known behind a point.
        """
        found = self._of(call, callee)
        if found is None:
            return None
        method, inner = found
        left = _through(self._program.graph(method), into(call, method, known), kept)
        return into(inner, callee, left)

    def _of(self, call: ast.Call, callee: Function) -> tuple[Function, ast.Call] | None:
        """Return the method that a call names, and the one call in it that runs the function."""
        asked = call, callee
        if asked not in self._known:
            self._known[asked] = self._found(*asked)
        return self._known[asked]

    def _found(self, call: ast.Call, callee: Function) -> tuple[Function, ast.Call] | None:
        if self._project.site(call, callee) is not None:
            return None
        found = [
            (method, inner)
            for method in self._named.get(call, ())
            for inner in method.own_nodes
            if isinstance(inner, ast.Call) and self._project.site(inner, callee) is not None
        ]
        return found[0] if len(found) == 1 else None

    @cached_property
    def _named(self) -> dict[ast.Call, list[Function]]:
        """The functions that calls name and do not run themselves."""
        found: dict[ast.Call, list[Function]] = {}
        for function, sites in self._project.calls.sites.items():
            for site in sites:
                if function not in self._project.callees(site.call):
                    found.setdefault(site.call, []).append(function)
        return found


def _through(graph: Graph, known: Assumption, kept: Kept) -> Assumption:
    """Return what is known at the end of a function that goes one way, of what is known where it begins."""
    point, seen = graph.entry, {graph.entry}
    while point is not graph.exit:
        known = kept(point, known)
        usual = [e for e in graph.successors(point) if e.kind is not EdgeKind.EXCEPTION]
        if len(usual) != 1 or usual[0].target in seen:
            return NOTHING
        point = usual[0].target
        seen.add(point)
    return known
