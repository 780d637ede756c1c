"""The points of functions at which something may happen, and the edges between them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection
from functools import cached_property

from amp_migrate.facts.below import every, names_in, outcomes
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.scopes import assigned
from amp_migrate.flow.assumption import Assumption, Known
from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.flow.cfg.points import Edge, EdgeKind, Point
from amp_migrate.flow.cfg.points import Kind as PointKind
from amp_migrate.flow.cfg.subject import DECIDES, asked_by
from amp_migrate.flow.changes import stored_name
from amp_migrate.flow.terms import Term
from amp_migrate.project import Function
from amp_migrate.protocol.calls import keywords
from amp_migrate.protocol.calls.standing import standing_of
from amp_migrate.protocol.code.liveness import Liveness
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.events import Kind
from amp_migrate.training.origins.switches import truth

_ALWAYS = frozenset(
    {
        PointKind.ENTRY, PointKind.EXIT, PointKind.RAISED, PointKind.TEST, PointKind.NEXT, PointKind.YIELD,
        PointKind.ENTER, PointKind.LEAVE, PointKind.RAISE, PointKind.CAUGHT, PointKind.MATCH,
    }
)  # fmt: skip
_NEVER_FAIL = (Kind.UNSCALE, Kind.UPDATE, Kind.SET_SCALE, Kind.ZERO_GRAD)
_PLAIN = frozenset({"append", "cpu", "cuda", "detach", "eval", "format", "get_scale", "item", "to"})
"""Methods of which nobody expects an exception."""
_BINDS = frozenset({PointKind.STORE, PointKind.DELETE, PointKind.UNBIND, PointKind.IMPORT})


class Course:
    """The graphs of a program without what does not matter to its events."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.answers = standing_of(program).answers
        self.liveness = Liveness(program)
        self._edges: dict[Function, dict[Point, tuple[Edge, ...]]] = {}
        self._raises: dict[Point, bool] = {}
        self._asked: dict[ast.expr, bool | None] = {}
        self._training: dict[tuple[Function, ast.AST], bool] = {}

    def edges(self, function: Function, point: Point) -> tuple[Edge, ...]:
        """Return the edges out of a point, each to the next point that matters.

        Those of exceptions are among them where a call may raise one that the training survives.
        """
        known = self._edges.setdefault(function, {})
        if point not in known:
            graph = self._program.graph(function)
            raises = self._may_raise(function, point)
            known[point] = tuple(
                edge._replace(target=self._onward(function, graph, edge.target))
                for edge in graph.successors(point)
                if raises or edge.kind is not EdgeKind.EXCEPTION
            )
        return known[point]

    def raises(self, function: Function, point: Point) -> bool:
        """Tell whether the training survives an exception at a point."""
        if point not in self._raises:
            edges = self.edges(function, point)
            self._raises[point] = any(edge.kind is EdgeKind.EXCEPTION for edge in edges)
        return self._raises[point]

    def _may_raise(self, function: Function, point: Point) -> bool:
        """Tell whether a point calls what may raise an exception that the training survives."""
        node = point.node
        if point.kind is not PointKind.CALL or not isinstance(node, ast.Call):
            return False
        if not self._program.exceptions.survived(function, node):
            return False
        if any(e.kind in _NEVER_FAIL for e in self._program.events(function, node)):
            return False
        if isinstance(node.func, ast.Name) and node.func.id not in ("next", "anext"):
            return not hasattr(builtins, node.func.id)
        return not isinstance(node.func, ast.Attribute) or node.func.attr not in _PLAIN

    def _onward(self, function: Function, graph: Graph, point: Point) -> Point:
        seen = {point}
        while not self._matters(function, point):
            out = [e for e in graph.successors(point) if e.kind is not EdgeKind.EXCEPTION]
            if len(out) != 1 or out[0].target in seen or out[0].target.kind is PointKind.NEXT:
                break
            point = out[0].target
            seen.add(point)
        return point

    def _matters(self, function: Function, point: Point) -> bool:
        """Tell whether something may happen at a point: an event, a call, a test, or a name that tests read."""
        node, program = point.node, self._program
        if point.kind in _ALWAYS or program.events(function, node):
            return True
        if point.kind is PointKind.CALL and isinstance(node, ast.Call):
            if (
                program.calls.of(node)
                or program.calls.handed(node)
                or program.entered(function, node)
            ):
                return True
            changed = (name for name, _ in keywords.changed(program.project, node))
            return self._may_raise(function, point) or not self._watched.isdisjoint(changed)
        if point.kind is PointKind.LOAD:
            return bool(program.runs(node))
        if point.kind in _BINDS:
            return bool(bound_names(node) & self._watched)
        return False

    @cached_property
    def _watched(self) -> frozenset[str]:
        """The names and attributes whose value decides a test, the method of a call, or whether a loss is scaled."""
        found = {name for names in self._unclear.values() for name in names}
        for function in self._program.relevant:
            for node in function.all_nodes:
                if isinstance(node, DECIDES):
                    for test in asked_by(node) if self.trains(function, node) else ():
                        found |= names_in(test) | names_in(self.answers.spelt(test))
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    if len(self._program.methods(node)) > 1:
                        found |= names_in(node.func.value)
                elif isinstance(node, ast.withitem):
                    choice = self._program.decides(function, node.context_expr)
                    if choice is not None:
                        found |= names_in(self.answers.spelt(choice.asked))
        found |= keywords.spelt(self._program, found)
        behind = standing_of(self._program).behind(found)
        return frozenset(found.union(*(names_in(test) for _, test in behind)))

    def outcome(self, function: Function, test: ast.expr) -> bool | None:
        """Return how a test of a switch, or of whether there is a GradScaler, comes out with AMP on; None for any other."""
        if test not in self._asked:
            asked = self._asks(function, test)
            switched = truth(self._program.project, function, test) if asked is None else asked
            self._asked[test] = switched
        return self._asked[test]

    def there(
        self, function: Function, test: ast.expr, known: Assumption, truth: bool
    ) -> Assumption | None:
        """Return what is known where a test has come out as `truth`: of a GradScaler whether it is there, all along a run; None where it cannot."""
        asked = self._of_scaler(function, test)
        if asked is None or asked[0] in self._there:
            return known
        return _there(known, asked[0], truth is asked[1])

    def called(
        self, function: Function, node: ast.AST | None, known: Assumption
    ) -> Assumption | None:
        """Return what is known behind a call of a method of a GradScaler, which is there then; None where it raises as it is not."""
        found: Assumption | None = known
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            number = self._one(function, node.func.value)
            if number is not None and number not in self._there and found is not None:
                found = _there(found, number, True)
            node = node.func.value
        return found

    def _one(self, function: Function, node: ast.expr) -> int | None:
        """Return the one GradScaler that an expression may hold."""
        objects = self._program.training.objects
        held = objects.groups(function.module, node) if objects.scalers else frozenset()
        numbers = [s.number for s in objects.scalers if s.groups & held]
        return numbers[0] if len(numbers) == 1 else None

    def _asks(self, function: Function, test: ast.expr) -> bool | None:
        asked = self._of_scaler(function, test)
        return asked[1] if asked is not None and asked[0] in self._there else None

    def _of_scaler(self, function: Function, test: ast.expr) -> tuple[int, bool] | None:
        """Return the GradScaler of which a test asks whether it is there, and how it comes out where it is."""
        subject, positive = test, True
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            subject, positive = test.operand, False
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            against = test.comparators[0]
            if not isinstance(against, ast.Constant) or against.value is not None:
                return None
            subject, positive = test.left, isinstance(test.ops[0], ast.IsNot | ast.NotEq)
        if not isinstance(subject, ast.Name | ast.Attribute):
            return None
        number = self._program.training.objects.scaler(function.module, subject)
        if number is None or self._is_handed_on(function, subject):
            return None
        return number, positive

    def _is_handed_on(self, function: Function, subject: ast.Name | ast.Attribute) -> bool:
        """Tell whether a test decides that a name holds a GradScaler of another one, or None."""
        module = function.module
        if isinstance(subject, ast.Name):
            values = [assigned(module.tree, bound) for bound in module.scopes.bound(subject)]
        else:
            stored = self._program.training.objects.stored.get(subject.attr, ())
            values = [value for _, _, value in stored]
        choices = [[*outcomes(v)] for v in values if isinstance(v, ast.IfExp | ast.BoolOp)]
        return any(
            any(map(is_none, arms)) and any(isinstance(a, ast.Name | ast.Attribute) for a in arms)
            for arms in choices
        )

    @cached_property
    def _there(self) -> frozenset[int]:
        """The GradScalers that are there wherever AMP is on: all of a program that are made under one test, and those under none."""
        objects = self._program.training.objects
        made: dict[int, set[frozenset[tuple[str, bool]]]] = {}
        for module, call in objects.made_scalers:
            number = objects.scaler(module, call)
            tests = frozenset((ast.dump(up.test), way) for up, way in module.tree.sides(call))
            if number is not None:
                made.setdefault(number, set()).add(tests)
        alike = len({frozenset(tests) for tests in made.values()}) < 2
        return frozenset(number for number, tests in made.items() if alike or _is_always(tests))

    def scales(self, function: Function, name: ast.Name, value: ast.expr | None) -> bool | None:
        """Return whether what a name is bound to is a scaled loss, if a backward that may be either needs to know."""
        if value is None or name.id not in self._unclear.get(function, ()):
            return None
        return self._program.training.losses.scaled(function, value)

    @cached_property
    def _unclear(self) -> dict[Function, set[str]]:
        """The names of losses of which the way decides whether they are scaled."""
        found: dict[Function, set[str]] = {}
        for function, events in self._program.training.by_function.items():
            for held in events.values():
                for name in (e.loss for e in held if e.scaled is None and e.loss is not None):
                    found.setdefault(function, set()).add(name)
        return found

    def trains(self, function: Function, node: ast.AST) -> bool:
        """Tell whether an event, or a call that may lead to one, stands in a node."""
        if (function, node) not in self._training:
            events = self._program.training.of(function)
            self._training[function, node] = any(
                part in events or (isinstance(part, ast.Call) and bool(self._program.callees(part)))
                for part in every(node)
            )
        return self._training[function, node]


def _there(known: Assumption, number: int, truth: bool) -> Assumption | None:
    """Return what is known with a GradScaler that is there or not; None where the other is known."""
    term, found = Term(f"there({number})", frozenset()), Known(truth)
    return known.with_fact(term, found) if known.get(term) in (None, found) else None


def _is_always(made: Collection[frozenset[tuple[str, bool]]]) -> bool:
    """Tell whether one of some ways to an object is taken in any case: a way without tests, or both ways of one test."""
    left = set(made)
    while frozenset() not in left:
        joined = {
            tests - {(test, way)}
            for tests in left
            for test, way in tests
            if (tests - {(test, way)}) | {(test, not way)} in left
        }
        if joined <= left:
            return False
        left |= joined
    return True


def bound_names(node: ast.AST) -> set[str]:
    """Return the name that a point binds, or all that may be meant where it binds an item."""
    if isinstance(node, ast.Attribute):
        return {node.attr}
    if isinstance(node, ast.Subscript):
        return names_in(node)
    name = stored_name(node)
    return {name} if name is not None else set()
