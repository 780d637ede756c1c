"""What runs where a file is imported: its top-level code, less what only runs as a program."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.modules.imports import run_by
from amp_migrate.project import Function
from amp_migrate.project.once import once
from amp_migrate.protocol.code.program import Program

_PROGRAM = ast.parse("__name__ == '__main__'", mode="eval").body


class Imports:
    """What the imports of a program run, and may come to."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._project = program.project
        self._tops: dict[ast.alias, list[Function]] = {}

    def tops(self, point: Point) -> list[Function]:
        """Return the top-level code that an import runs, unless it ran before."""
        alias = point.node
        if point.kind is not Kind.IMPORT or not isinstance(alias, ast.alias):
            return []
        if alias not in self._tops:
            module = self._project.module_of(alias)
            run = run_by(self._project.lookup, module, alias)
            self._tops[alias] = [found.top for found in run]
        return self._tops[alias]

    def may_come_to(
        self, top: Function, leading: Collection[Function], calls: Collection[ast.Call]
    ) -> bool:
        """Tell whether the import of a file may come to some calls, or to what leads there."""
        return any(
            point.node in calls or any(f in leading for f in self._run(point))
            for point in self._reached(top)
        )

    def _run(self, point: Point) -> list[Function]:
        node = point.node
        return self._project.callees(node) if isinstance(node, ast.Call) else self.tops(point)

    def _reached(self, top: Function) -> Iterator[Point]:
        graph, known = self._program.graph(top), as_import(Assumption())
        found = dict.fromkeys([graph.entry])
        queue = [graph.entry]
        while queue:
            point = queue.pop()
            yield point
            for edge in graph.successors(point):
                ruled_out = edge.test is not None and evaluate(edge.test, known) is (not edge.truth)
                if edge.target not in found and not edge.fails and not ruled_out:
                    found[edge.target] = None
                    queue.append(edge.target)


@once
def imports_of(program: Program) -> Imports:
    """Return the imports of a program."""
    return Imports(program)


def as_import(known: Assumption) -> Assumption:
    """Return what holds where a file does not run as a program, beside what is known."""
    return refine(known, _PROGRAM, False) or known
