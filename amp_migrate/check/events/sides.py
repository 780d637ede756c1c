"""The two texts of a project, before and after: their functions by name, and the automaton of each."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, wraps
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

from amp_migrate.check.apex.installed import installed, unsettled
from amp_migrate.check.events.claims import Allowed, Claims
from amp_migrate.check.events.labels import Does, Labels, called, text_of
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import walk
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.cfg.points import Kind as PointKind
from amp_migrate.flow.cfg.points import Point
from amp_migrate.project import Function
from amp_migrate.project.once import kept
from amp_migrate.project.reach import upwards
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.faults import Place, Trouble
from amp_migrate.training.origins.constants import constant_of

Key = tuple[str, str]
Answer = TypeVar("Answer")
DECIDES = ast.If | ast.While
LOOPS = ast.For | ast.AsyncFor
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
        self._known: dict[tuple[Function, bool], Assumption] = {}
        self._names: dict[Key, frozenset[str]] = {}
        self._binding: dict[Function, frozenset[str]] = {}
        self.beside: WeakKeyDictionary[Side, dict[object, object]] = WeakKeyDictionary()
        self.functions: dict[Key, list[Function]] = {}
        for function in self.project.functions():
            self.functions.setdefault(key(function), []).append(function)

    def constant(self, function: Function, value: ast.expr) -> ast.Constant | None:
        """Return the one constant that an expression of a function is, where it is one on every way to it."""
        losses = self.program.training.losses
        return constant_of(self.project, losses.reached, function, value)

    @cached_property
    def _own(self) -> set[Function]:
        """The functions in which something happens."""
        found: set[Function] = set()
        for module in self.project.modules.values():
            for call in module.tree.nodes(ast.Call):
                function = self.project.function_of(module, call)
                if function not in found and self.labels.of_call(function, call) is not None:
                    found.add(function)
            for node in module.tree.attributes("grad"):
                found.add(self.project.function_of(module, node))
        return found

    @cached_property
    def relevant(self) -> frozenset[Key]:
        """The functions in which something happens, and those that may come to one by calls."""
        return frozenset(map(key, upwards(self.project, *self._own)))

    def known(self, function: Function, *, there: bool = True) -> Assumption:
        """Return what holds in a function where Apex is installed, or is not."""
        if (function, there) not in self._known:
            self._known[function, there] = installed(self.project, function, there=there)
        return self._known[function, there]

    def text(self, name: Key) -> str:
        """Return the text of all functions of a name."""
        parts = []
        for function in self.functions[name]:
            lines, node = function.module.tree.lines, function.node
            above = node.decorator_list[:1] if node is not None else []
            first = above[0].lineno if above else getattr(node, "lineno", 0)
            parts += lines if node is None else lines[first - 1 : node.end_lineno]
        return "\n".join(parts)

    def names(self, name: Key) -> frozenset[str]:
        """Return the names that stand in the functions of a name."""
        if name not in self._names:
            self._names[name] = frozenset(self._named(name))
        return self._names[name]

    def _named(self, name: Key) -> set[str]:
        found: set[str] = set()
        for function in self.functions[name]:
            for part in function.all_nodes:
                if isinstance(part, ast.Name):
                    found.add(part.id)
                elif isinstance(part, ast.arg):
                    found.add(part.arg)
                elif isinstance(part, ast.Attribute):
                    found.add(text_of(part))
        return found

    def bound(self, name: Key) -> frozenset[str]:
        """Return the names that the functions of a name bind themselves."""
        return frozenset().union(*map(self._bound, self.functions[name]))

    def around(self, name: Key) -> frozenset[str]:
        """Return the names that are bound where the functions of a name stand."""
        outer = (
            up for f in self.functions[name] for up in (*f.outward[1:], f.module.top) if up is not f
        )
        return frozenset().union(*map(self._bound, outer))

    def _bound(self, function: Function) -> frozenset[str]:
        """Return the names that a function, or the code of a file, binds itself."""
        if function not in self._binding:
            nodes = function.own_nodes
            self._binding[function] = frozenset(
                part.id if isinstance(part, ast.Name) else part.arg
                for part in nodes
                if isinstance(part, ast.arg)
                or (isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
            )
        return self._binding[function]

    def calls(self, name: Key, known: frozenset[Key]) -> dict[str, set[Function]]:
        """Return how the functions of a name call the known ones, with what each call may run."""
        found: dict[str, set[Function]] = {}
        for function in self.functions[name]:
            for call in self.program.graph(function).calls:
                callees = self.project.callees(call)
                if any(key(f) in known for f in callees):
                    found.setdefault(called(call.func), set()).update(callees)
        return found

    def reached(self, functions: Iterable[Function]) -> list[Function]:
        """Return some functions, and all that they may call."""
        return closure(functions, self.onward)

    def onward(self, function: Function) -> Iterator[Function]:
        """Yield what the calls of a function may run."""
        return (
            c for call in self.program.graph(function).calls for c in self.project.callees(call)
        )

    def kinds(self, functions: Iterable[Function]) -> set[str]:
        """Return the kinds of the events in some functions, without those in what they call."""
        labels = [
            self.label(function, point, set(), set(), frozenset())
            for function in functions
            for point in self.program.graph(function).points
        ]
        return {label.kind for label in labels if label is not None}

    def label(
        self,
        function: Function,
        point: Point,
        calls: set[str],
        forwards: set[str],
        introduced: frozenset[str],
    ) -> Label | None:
        """Return what happens at a point; `calls` lead to events, and `forwards` run networks."""
        node = point.node
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            if point.kind in (PointKind.LOAD, PointKind.STORE, PointKind.DELETE):
                return self.labels.of_gradient(function, node)
        if point.kind is not PointKind.CALL or not isinstance(node, ast.Call):
            return None
        found = self.labels.of_call(function, node, introduced)
        if found is not None:
            return found
        text = called(node.func)
        if text in calls:
            return Label(Does.CALL.value, text)
        return Label(Does.FORWARD.value, text) if text in forwards else None

    def of_kind(
        self, function: Function, *kinds: Does, introduced: frozenset[str] = frozenset()
    ) -> Iterator[tuple[ast.Call, Label]]:
        """Yield the calls of a function that are events of some kinds, each once."""
        wanted = {kind.value for kind in kinds}
        for call in self.program.graph(function).calls:
            label = self.labels.of_call(function, call, introduced)
            if label is not None and label.kind in wanted:
                yield call, label

    def events(
        self, name: Key, calls: set[str], forwards: set[str], introduced: frozenset[str]
    ) -> list[tuple[Label, int]]:
        """Return the events of the functions of a name with their lines, in the order of the text."""
        found: dict[ast.AST, tuple[Label, int]] = {}
        for function in self.functions[name]:
            for point in self.program.graph(function).points:
                label = self.label(function, point, calls, forwards, introduced)
                if label is not None:
                    found[point.node] = label, point.line
        return list(found.values())

    def tests(self, name: Key, calls: set[str], allowed: Allowed) -> dict[ast.AST, str]:
        """Return the tests and loops on which events depend, with their text, but for what may differ.

        Of a program whose way of Apex goes, a test asks what it asks where Apex is missing.
        """
        gone = allowed.without_apex
        return {
            node: asked(node, self.known(function, there=False) if gone else NOTHING)
            for function in self.functions[name]
            for node in function.own_nodes
            if isinstance(node, DECIDES | LOOPS)
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
                label = self.labels.of_gradient(function, part)
            elif isinstance(part, ast.Call):
                if called(part.func) in calls:
                    return True
                label = self.labels.of_call(function, part)
            if label is not None and label.kind not in allowed.kinds:
                return True
        return False


def of_both(ask: Callable[[Side, Side], Answer]) -> Callable[[Side, Side], Answer]:
    """Answer a question about two texts when it is first asked; the answer holds nothing of the old one."""

    @wraps(ask)
    def asked(old: Side, new: Side) -> Answer:
        answers = new.beside.setdefault(old, {})
        if ask not in answers:
            answers[ask] = ask(old, new)
        return cast(Answer, answers[ask])

    return asked


@of_both
def changed(old: Side, new: Side) -> Mapping[Key, frozenset[str]]:
    """Return the functions of both texts that differ in them, each with the names that only the new one has, and nothing around."""
    return {
        name: new.names(name) - old.names(name) - (old.around(name) - new.bound(name))
        for name in sorted(old.functions.keys() & new.functions.keys())
        if old.text(name) != new.text(name)
    }


def staying(
    old: Side, new: Side, claims: Claims
) -> Iterator[tuple[Sequence[Function], Sequence[Function], frozenset[str]]]:
    """Yield what those were and are, with these names, but where the way of Apex goes from their file."""
    for name, introduced in changed(old, new).items():
        before, after = old.functions[name], new.functions[name]
        if not any(map(claims.drops, before)):
            yield before, after, introduced


def differs(
    function: Function,
    node: ast.expr | ast.stmt,
    what: str,
    *,
    gone: bool = False,
    trouble: Trouble = Trouble.GRADIENTS,
) -> tuple[Key, Difference]:
    """Return what is said of a node of the new text alone, or with `gone` of the old one alone."""
    place = Place(function.module.path, node.lineno)
    places = (place, None) if gone else (None, place)
    return key(function), Difference((Step(Label(what), *places),), trouble)


def side_of(program: Program) -> Side:
    """Return one of the two texts; what is read of it lives as long as its project."""
    return kept(program.project, (Side, program), lambda: Side(program))


def asked(node: ast.If | ast.While | ast.For | ast.AsyncFor, known: Assumption = NOTHING) -> str:
    """Return what a test or loop asks, but for what is known."""
    if isinstance(node, DECIDES):
        return f"if {ast.unparse(unsettled(node.test, known))}"
    return f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
