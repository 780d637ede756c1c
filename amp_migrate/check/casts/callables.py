"""Values that run a network when they are called, and calls that run a network they are given."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from amp_migrate.check.apex.courses import handed
from amp_migrate.check.events.labels import called, text_of
from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import all_given, tail, walk
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.order import key
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.beliefs import AUTOCASTS, RUNS_GIVEN, WRAPS_GIVEN
from amp_migrate.training.bindings import bound_value, run_first
from amp_migrate.training.forwards.forwards import is_housekeeping
from amp_migrate.training.forwards.given import Given
from amp_migrate.training.forwards.holders import copies_later
from amp_migrate.training.forwards.unseen import evaluates_given, evaluates_own
from amp_migrate.training.objects import Objects
from amp_migrate.values.objects import Held, Made, Partial

_OF_POOLS = frozenset({"map", "starmap"})
_IS_RUN = frozenset({"__call__", "forward"})
_MADE_TO_RUN = frozenset({"operator.attrgetter", "operator.methodcaller"})
_OF_FIRST = frozenset({"operator.call", "operator.methodcaller()"})


class Callables:
    """Follows the values that run one of some networks."""

    def __init__(
        self, project: Project, objects: Objects, networks: frozenset[int], holders: frozenset[int]
    ) -> None:
        self._project = project
        self._objects = objects
        self._networks = networks
        self._holding = holders
        self._given = Given(project, objects)

    def run(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call runs a network: what it calls is one, or it is given one to run."""
        if self._runs(module, call.func, set()):
            return not self._is_named_alike(module, call)
        if call.args and self._runs_first(module, call):
            return self._runs(module, call.args[0], set())
        evaluated = evaluates_given(self._project, module, call)
        if evaluated and isinstance(call.func, ast.Attribute) and evaluates_own(call.func.attr):
            held = self._objects.groups(module, call.func.value)
            if self._objects.origins(held) & self._holding:
                return True
        given = evaluated or (is_given(call) and not self._is_own(module, call))
        first = run_first(self._project, module, call)
        if first is not None and self._completes(module, first):
            return False  # what it runs is asked there
        return given and any(self._runs(module, a, set()) for a in all_given(call))

    def _is_named_alike(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a method in sight is called that has the name of what keeps a network out of sight: ``self.runner()``."""
        held = self._objects.origins(self._objects.groups(module, call.func)) & self._networks
        return bool(self._project.callees(call)) and bool(held) and held <= self._holding

    def _runs_first(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call runs its first argument by a method of its class: ``Net.forward(net, x)``."""
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in _IS_RUN:
            return True
        return self._operator(module, func) in _OF_FIRST

    def _operator(self, module: Module, func: ast.expr) -> str | None:
        """Return the function of Python that is called, with brackets where what it makes is, in a variable too."""
        if isinstance(func, ast.Call):
            made, named = self._operator(module, func.func), all_given(func)[:1]
            idle = any(is_housekeeping(string(name) or "") for name in named)
            return f"{made}()" if made in _MADE_TO_RUN and not idle else None
        if isinstance(func, ast.Name) and (value := module.scopes.only_value(func)) is not None:
            return self._operator(module, value) if isinstance(value, ast.Call) else None
        return self._project.external(module, func)

    def _is_own(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call is of a method or function that is named as one which runs what it is given."""
        if any(callee.name == tail(call) for callee in self._project.callees(call)):
            return True
        of_object = isinstance(call.func, ast.Attribute) and tail(call) not in _OF_POOLS
        return of_object and self._project.external(module, call.func) is None

    def _runs(self, module: Module, node: ast.expr, seen: set[ast.AST]) -> bool:
        if node in seen:
            return False
        seen.add(node)
        if self._objects.origins(self._objects.groups(module, node)) & self._networks:
            return True
        return any(self._runs(module, part, seen) for part in self._within(module, node))

    def _completes(self, module: Module, node: ast.expr) -> bool:
        """Tell whether a value is a function of the project with some of its arguments, by ``functools.partial``."""
        facts = self._project.values.facts(module, node)
        return any(isinstance(fact, Partial) for fact in facts) and all(
            isinstance(fact, Partial | Held | Made) for fact in facts
        )

    def _within(self, module: Module, node: ast.expr) -> Iterator[ast.expr]:
        """Yield what an expression stands for."""
        is_method = isinstance(node, ast.Attribute) and node.attr in _IS_RUN
        if isinstance(node, ast.NamedExpr) or is_method:
            assert isinstance(node, ast.NamedExpr | ast.Attribute)
            yield node.value
        elif isinstance(node, ast.Subscript):
            yield from _holders(node)
        elif isinstance(node, ast.IfExp):
            yield from (node.body, node.orelse)
        elif isinstance(node, ast.Call):
            if self._operator(module, node.func) == "operator.attrgetter()":
                yield from all_given(node)
            seen = self._project.callees(node)
            if copies_later(self._project, module, node):
                return
            wraps = not seen and tail(node) in WRAPS_GIVEN
            yield from all_given(node) if wraps else self._given.of_call(module, node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            for binding in module.scopes.bound(node):
                value = bound_value(module, binding)
                if isinstance(value, ast.Attribute | ast.Call | ast.NamedExpr | ast.IfExp):
                    yield value


def _holders(item: ast.Subscript) -> Iterator[ast.expr]:
    """Yield what an item is taken from: a list of layers, and the network that has it."""
    node = item.value
    while isinstance(node, ast.Attribute | ast.Subscript):
        yield node
        node = node.value
    yield node


def is_given(call: ast.Call) -> bool:
    """Tell whether a call runs what it is given."""
    return tail(call) in RUNS_GIVEN


def spelled(call: ast.Call) -> str:
    """Return how a call names what it runs, on either side."""
    if not is_given(call):
        return called(call.func)
    return f"{called(call.func)}({', '.join(text_of(a) for a in all_given(call))})"


def counterparts(
    was: Collection[ast.Call], now: Sequence[ast.Call], call: ast.Call
) -> list[ast.Call]:
    """Return what a call was before, all that read the same where their number changed."""
    ordered = sorted(was, key=key)
    if len(was) == len(now):
        return [ordered[sorted(now, key=key).index(call)]]
    return ordered


class Replaced:
    """Knows the networks whose own ``forward`` the new text replaces by one with casts."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._project = program.project

    @cached_property
    def networks(self) -> frozenset[int]:
        """The names of those networks."""
        project = self._project
        return frozenset(
            group
            for module, node in project.nodes(ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Attribute) and target.attr == "forward"
            if any(
                project.external(module, n.func) in AUTOCASTS
                for n in walk(node)
                if isinstance(n, ast.Call)
            )
            for group in project.values.groups(module, target.value)
        )

    def runs(
        self,
        function: Function,
        node: ast.expr,
        begun: Collection[Function],
        seen: frozenset[Function] = frozenset(),
    ) -> bool:
        """Tell whether a function calls one of those for sure, where each that was `begun` with Apex on hands it one."""
        held = self._project.values.sources(function.module, node) if self.networks else None
        if not held or held <= self.networks:
            return bool(held)
        name = node.id if isinstance(node, ast.Name) else ""
        bound = function.module.scopes.bindings(function.scope, name)
        if function in seen or not bound or not isinstance(bound[0], ast.arg):
            return False
        if not self._project.callers(function):
            return self._is_run_beside(function, begun, seen | {function})
        sites = [s for s in self._project.callers(function) if s.function in begun]
        given = [(s.function, self._project.given(s.call, function).get(name)) for s in sites]
        return (
            bool(sites)
            and len(bound) == 1
            and all(
                value is not None and self.runs(where, value, begun, seen | {function})
                for where, value in given
            )
        )

    def _is_run_beside(
        self, function: Function, begun: Collection[Function], seen: frozenset[Function]
    ) -> bool:
        """Tell whether libraries alone run a function, which were given no other networks beside it, nor get any later."""
        calls = [(f, c) for f in begun for c in f.calls if function in handed(self._program, c)]
        given = {node for _, call in calls for node in all_given(call)}
        escapes = [e for e in self._project.escapes(function) if e[0] in begun]
        networks = [
            [*((f, n) for n in all_given(call) if self._is_network(f, n)), *self._put_into(f, call)]
            for f, call in calls
        ]
        return (
            bool(calls)
            and all(escape[1] in given for escape in escapes)
            and all(
                found and all(self.runs(where, n, begun, seen) for where, n in found)
                for found in networks
            )
        )

    def _put_into(self, function: Function, call: ast.Call) -> Iterator[tuple[Function, ast.expr]]:
        """Yield the networks that attributes of what a call makes are set to, or may be: ``runner.model = averaged``."""
        groups, project = self._project.values.groups, self._project
        made = groups(function.module, call)
        for module, node in project.nodes(ast.Assign):
            where = project.function_of(module, node)
            stored = [t.value for t in node.targets if isinstance(t, ast.Attribute)]
            if any(
                groups(module, held) & made
                or not (where.is_receiver(held) or project.instance_classes(module, held))
                for held in stored
            ):
                if self._is_network(where, node.value):
                    yield where, node.value

    def _is_network(self, function: Function, node: ast.expr) -> bool:
        objects = self._program.training.objects
        known = objects.groups(function.module, node) & self.networks
        return bool(known) or objects.is_network(function.module, node)
