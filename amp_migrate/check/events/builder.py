"""The automaton of a function: its events in the order of its paths, those of what one side alone calls included."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from amp_migrate.check.events.labels import Does, called
from amp_migrate.check.events.sides import DECIDES, LOOPS, Key, Side, asked, key
from amp_migrate.check.events.traces import Automaton, Label
from amp_migrate.flow.cfg.points import Edge, EdgeKind, Point
from amp_migrate.flow.cfg.points import Kind as PointKind
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refuted
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place


class Builder:
    """Makes the automaton of a function of one side.

    `tests` are those that both sides have, with their text, `calls` the texts of calls that lead to events, `forwards` those that
    run networks, `one_sided` the functions that the other side does not have, and `introduced` the names.
    """

    def __init__(
        self,
        side: Side,
        tests: Mapping[ast.AST, str],
        calls: set[str],
        forwards: set[str],
        one_sided: frozenset[Key],
        introduced: frozenset[str] = frozenset(),
        without_apex: bool = False,
        ending: bool = False,
    ) -> None:
        self._without_apex = without_apex
        self._ending = ending
        self._side = side
        self._tests = tests
        self._calls = calls
        self._forwards = forwards
        self._one_sided = one_sided
        self._introduced = introduced

    def build(self, name: Key) -> Automaton:
        """Return the automaton of all functions of a name."""
        made = Automaton()
        last = made.state()
        for function in self._side.functions[name]:
            start, stop = self._add(made, function, ())
            made.starts.append(start)
            line = getattr(function.node, "end_lineno", 0) or 0
            made.move(stop, Label(Does.END.value), Place(function.module.path, line), last)
        return made.ending(last) if self._ending else made

    def _add(
        self, made: Automaton, function: Function, above: tuple[Function, ...]
    ) -> tuple[int, int]:
        graph = self._side.program.graph(function)
        known = self._side.known(function, there=not self._without_apex)
        states = {point: made.state() for point in graph.points}
        for point in graph.points:
            if self._without_apex and self._is_apex(function, point):
                continue
            place = Place(function.module.path, point.line)
            at = self._behind(made, function, point, states[point], above)
            for edge in graph.successors(point):
                possible = edge.test is None or evaluate(edge.test, known) is not (not edge.truth)
                if possible and not edge.fails:
                    target = states[edge.target]
                    for label in reversed(self._refuted(function, edge)):
                        before = made.state()
                        made.move(before, label, place, target)
                        target = before
                    made.move(at, self._of_edge(function, edge), place, target)
        return states[graph.entry], states[graph.exit]

    def _is_apex(self, function: Function, point: Point) -> bool:
        node = point.node
        if point.kind is not PointKind.CALL or not isinstance(node, ast.Call):
            return False
        return self._side.labels.is_apex(function, node.func)

    def _behind(
        self,
        made: Automaton,
        function: Function,
        point: Point,
        at: int,
        above: tuple[Function, ...],
    ) -> int:
        """Return the state behind what happens at a point, what it calls on one side alone included."""
        place = Place(function.module.path, point.line)
        label = self._label(function, point)
        if label is not None:
            then = made.state()
            made.move(at, label, place, then)
            return then
        if point.kind is not PointKind.CALL or not isinstance(point.node, ast.Call):
            return at
        callees = self._side.project.callees(point.node)
        inner = [f for f in callees if key(f) in self._one_sided and f not in (*above, function)]
        if not inner:
            return at
        then = made.state()
        for callee in inner:
            start, stop = self._add(made, callee, (*above, function))
            made.move(at, None, place, start)
            made.move(stop, None, place, then)
        return then

    def _label(self, function: Function, point: Point) -> Label | None:
        return self._side.label(function, point, self._calls, self._forwards, self._introduced)

    def _refuted(self, function: Function, edge: Edge) -> list[Label]:
        """Return what a test that the other side lacks says of the `elif`s after it, where it is true."""
        up = function.module.tree.parent(edge.test) if edge.test is not None else None
        if not isinstance(up, ast.If) or up.test is not edge.test or not edge.truth:
            return []
        if up in self._tests:
            return []
        after = (self._tests[test] for test in refuted(up) if test in self._tests)
        return [Label(Does.TEST.value, f"{text[3:]} is False") for text in after]

    def _of_edge(self, function: Function, edge: Edge) -> Label | None:
        node = edge.source.node
        if edge.test is not None:
            up = function.module.tree.parent(edge.test)
            if not isinstance(up, DECIDES) or up.test is not edge.test:
                return None
            if not edge.truth and (stepped := without_gradients(up)) is not None:
                return Label(Does.STEP.value, stepped)
            if up in self._tests:
                return Label(Does.TEST.value, f"{self._tests[up][3:]} is {edge.truth}")
        elif edge.source.kind is PointKind.NEXT and isinstance(node, LOOPS):
            if node in self._tests:
                over = edge.kind is EdgeKind.FALSE
                return Label(Does.LOOP.value, asked(node)[4:] + (" is over" if over else ""))
        return None


def without_gradients(node: ast.If | ast.While) -> str | None:
    """Return the optimizer that a test leaves unstepped when none of its parameters has gradients.

    A step without gradients changes nothing.
    """
    call = node.test
    if not isinstance(call, ast.Call) or called(call.func) != "any" or len(call.args) != 1:
        return None
    over = call.args[0]
    if not isinstance(over, ast.GeneratorExp) or not isinstance(over.elt, ast.Compare):
        return None
    groups, asked = over.generators[0].iter, over.elt
    has_gradient = isinstance(asked.left, ast.Attribute) and asked.left.attr == "grad"
    if not has_gradient or not isinstance(asked.ops[0], ast.IsNot):
        return None
    if isinstance(groups, ast.Attribute) and groups.attr == "param_groups":
        return ast.unparse(groups.value)
    return None
