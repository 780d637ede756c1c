"""Reads of gradients that a rule says it moves: what no step came without must still come before every step."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from amp_migrate.check.apex.assumed import guards
from amp_migrate.check.events.labels import Does, text_of
from amp_migrate.check.events.sides import Key, Side
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.facts.paths import all_given
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.flow.cfg.points import Point
from amp_migrate.flow.changes import steady
from amp_migrate.flow.paths import Paths, leads
from amp_migrate.flow.refine import refine
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place
from amp_migrate.training.events import Kind


class Reads:
    """Where gradients are read and stepped on in the functions of a name, of one side; some `calls` step.

    What hands an optimizer to code out of sight may be a step of it.
    """

    def __init__(
        self,
        side: Side,
        name: Key,
        calls: set[str],
        stepping: Collection[str],
        introduced: frozenset[str],
    ) -> None:
        self._file = name[0]
        self._stepping = stepping
        self._labels: list[tuple[Function, Graph, dict[Point, Label]]] = []
        for function in side.functions[name]:
            graph = side.program.graph(function)
            events = side.program.training.of(function)
            others = {
                n
                for n, held in events.items()
                if any(e.kind is Kind.OTHER_STEP for e in held)
                if not _is_given_one(side, function, n)
            }
            labels = {
                point: label
                for point in graph.points
                if point.node not in others
                if (label := side.label(function, point, calls, set(), introduced)) is not None
            }
            handed = {n for n, held in events.items() if any(e.kind is Kind.HANDED for e in held)}
            labels |= {
                point: Label(Does.STEP.value, text_of(point.node))
                for point in graph.points
                if point.node in handed and isinstance(point.node, ast.Call)
            }
            self._labels.append((function, graph, labels))

    def reads(self) -> Iterator[tuple[Label, Assumption]]:
        """Yield the reads, each with what the tests say among which it stands."""
        for function, _, labels in self._labels:
            for point, label in labels.items():
                if label.kind == Does.READ.value:
                    yield label, _guarded(function, point)

    def steps_without(self, read: Label, known: Assumption) -> dict[Label, Place]:
        """Return the steps to which a way leads, from the start or from another step, that goes past a read."""
        found: dict[Label, Place] = {}
        for _, graph, labels in self._labels:
            paths = Paths(graph, known, changes=steady, exceptions=False)
            steps = [p for p, label in labels.items() if self._steps(label)]
            read_at = [p for p, label in labels.items() if label == read]
            for step in steps:
                if leads(paths, [graph.entry, *steps], [step], read_at):
                    found.setdefault(labels[step], Place(self._file, step.line))
        return found

    def _steps(self, label: Label) -> bool:
        called = label.kind == Does.CALL.value and label.of in self._stepping
        return called or label.kind == Does.STEP.value


def _is_given_one(side: Side, function: Function, node: ast.AST) -> bool:
    """Tell whether a call is given an optimizer."""
    objects = side.program.training.objects
    given = all_given(node) if isinstance(node, ast.Call) else []
    return any(objects.optimizers_of(function.module, argument) for argument in given)


def _guarded(function: Function, point: Point) -> Assumption:
    known: Assumption = NOTHING
    for test, truth in guards(function, point.node):
        known = refine(known, test, truth) or known
    return known


def unread(old: Reads, new: Reads) -> Difference | None:
    """Return a step of the new text that a read is missing before, which came before every such step."""
    for read, known in dict.fromkeys(old.reads()):
        had, has = old.steps_without(read, known), new.steps_without(read, known)
        for label in sorted(has.keys() - had.keys()):
            said = Label(f"`{read.of}` no longer comes before this step:")
            return Difference((Step(said, None, has[label]),))
    return None
