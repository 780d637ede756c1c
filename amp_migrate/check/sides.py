"""The two texts of a project, before and after: their functions by name, and the automaton of each."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property

from amp_migrate.check.claims import Allowed
from amp_migrate.check.installed import installed
from amp_migrate.check.labels import Does, Labels, text_of
from amp_migrate.check.traces import Automaton, Label
from amp_migrate.facts.paths import walk
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.cfg.points import Edge, EdgeKind, Point
from amp_migrate.flow.cfg.points import Kind as PointKind
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place
from amp_migrate.protocol.program import Program

Key = tuple[str, str]
_DECIDES = ast.If | ast.While
_LOOPS = ast.For | ast.AsyncFor
_JUMPS = ast.Return | ast.Break | ast.Continue


def key(function: Function) -> Key:
    """Return what names a function on both sides."""
    return function.module.path, function.qualname


class Side:
    """One of the two texts."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.project = program.project
        self.labels = Labels(program)
        self._known: dict[Function, Assumption] = {}
        self.functions: dict[Key, list[Function]] = {}
        for function in self.project.functions():
            self.functions.setdefault(key(function), []).append(function)

    @cached_property
    def _own(self) -> set[Function]:
        """The functions in which something happens."""
        found: set[Function] = set()
        for module in self.project.modules.values():
            for call in module.tree.nodes(ast.Call):
                function = self.project.function_of(module, call)
                if function not in found and self.labels.of_call(function, call) is not None:
                    found.add(function)
            for node in module.tree.nodes(ast.Attribute):
                if node.attr == "grad":
                    found.add(self.project.function_of(module, node))
        return found

    @cached_property
    def relevant(self) -> frozenset[Key]:
        """The functions in which something happens, and those that may come to one by calls."""
        found = list(self._own)
        seen = set(found)
        for function in found:
            for site in self.project.callers(function):
                if site.function not in seen:
                    seen.add(site.function)
                    found.append(site.function)
        return frozenset(map(key, seen))

    def known(self, function: Function) -> Assumption:
        """Return what holds in a function where Apex is installed."""
        if function not in self._known:
            self._known[function] = installed(self.project, function)
        return self._known[function]

    def text(self, name: Key) -> str:
        """Return the text of all functions of a name."""
        parts = []
        for function in self.functions[name]:
            lines, node = function.module.tree.lines, function.node
            parts += lines if node is None else lines[node.lineno - 1 : node.end_lineno]
        return "\n".join(parts)

    def names(self, name: Key) -> frozenset[str]:
        """Return the names that stand in the functions of a name."""
        found: set[str] = set()
        for function in self.functions[name]:
            for part in ast.walk(function.scope):
                if isinstance(part, ast.Name):
                    found.add(part.id)
                elif isinstance(part, ast.arg):
                    found.add(part.arg)
                elif isinstance(part, ast.Attribute):
                    found.add(text_of(part))
        return frozenset(found)

    def calls(self, name: Key, known: frozenset[Key]) -> set[str]:
        """Return how the functions of a name call the known ones."""
        return {
            text_of(call.func)
            for function in self.functions[name]
            for call in self._calls(function)
            if any(key(f) in known for f in self.project.callees(call))
        }

    def _calls(self, function: Function) -> Iterator[ast.Call]:
        for point in self.program.graph(function).points:
            if point.kind is PointKind.CALL and isinstance(point.node, ast.Call):
                yield point.node

    def tests(self, name: Key, calls: set[str], allowed: Allowed) -> dict[ast.AST, str]:
        """Return the tests and loops on which events depend, with their text, but for what may differ."""
        return {
            node: _asked(node)
            for function in self.functions[name]
            for node in walk(function.scope)
            if isinstance(node, _DECIDES | _LOOPS)
            and not allowed.lines & set(range(node.lineno, node.body[0].lineno + 1))
            and self._decides(node, function, calls, allowed)
        }

    def _decides(
        self, node: ast.AST, function: Function, calls: set[str], allowed: Allowed
    ) -> bool:
        """Tell whether an event, or a jump, depends on a test or loop."""
        for part in walk(node):
            if isinstance(part, _JUMPS):
                return True
            label = None
            if isinstance(part, ast.Attribute) and part.attr == "grad":
                label = self.labels.of_gradient(part)
            elif isinstance(part, ast.Call):
                if text_of(part.func) in calls:
                    return True
                label = self.labels.of_call(function, part)
            if label is not None and label.kind not in allowed.kinds:
                return True
        return False


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
        known = self._side.known(function)
        states = {point: made.state() for point in graph.points}
        for point in graph.points:
            if self._without_apex and self._is_apex(function, point):
                continue
            place = Place(function.module.path, point.line)
            at = self._behind(made, function, point, states[point], above)
            for edge in graph.successors(point):
                possible = edge.test is None or evaluate(edge.test, known) is not (not edge.truth)
                if possible and edge.kind is not EdgeKind.EXCEPTION:
                    made.move(at, self._of_edge(function, edge), place, states[edge.target])
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
        node = point.node
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            if point.kind in (PointKind.LOAD, PointKind.STORE, PointKind.DELETE):
                up = function.module.tree.parent(node)
                asked = isinstance(up, ast.Compare) and isinstance(up.ops[0], ast.IsNot)
                return None if asked else self._side.labels.of_gradient(node)
        if point.kind is not PointKind.CALL or not isinstance(node, ast.Call):
            return None
        found = self._side.labels.of_call(function, node, self._introduced)
        if found is not None:
            return found
        text = text_of(node.func)
        if text in self._calls:
            return Label(Does.CALL.value, text)
        return Label(Does.FORWARD.value, text) if text in self._forwards else None

    def _of_edge(self, function: Function, edge: Edge) -> Label | None:
        node = edge.source.node
        if edge.test is not None:
            up = function.module.tree.parent(edge.test)
            if not isinstance(up, _DECIDES) or up.test is not edge.test:
                return None
            if not edge.truth and (stepped := without_gradients(up)) is not None:
                return Label(Does.STEP.value, stepped)
            if up in self._tests:
                return Label(Does.TEST.value, f"{ast.unparse(edge.test)} is {edge.truth}")
        elif edge.source.kind is PointKind.NEXT and isinstance(node, _LOOPS):
            if node in self._tests:
                over = edge.kind is EdgeKind.FALSE
                return Label(Does.LOOP.value, _asked(node)[4:] + (" is over" if over else ""))
        return None


def without_gradients(node: ast.If | ast.While) -> str | None:
    """Return the optimizer that a test leaves unstepped when none of its parameters has gradients.

    A step without gradients changes nothing.
    """
    call = node.test
    if not isinstance(call, ast.Call) or text_of(call.func) != "any" or len(call.args) != 1:
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


def _asked(node: ast.If | ast.While | ast.For | ast.AsyncFor) -> str:
    if isinstance(node, _DECIDES):
        return f"if {ast.unparse(node.test)}"
    return f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
