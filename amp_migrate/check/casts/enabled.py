"""Whether what is given as ``enabled=`` comes out true, in whatever function it stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

from amp_migrate.check.apex.assumed import guards
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.casts.conditions.unbound import Always, Unbound
from amp_migrate.facts.below import every, with_parts
from amp_migrate.facts.paths import argument, outward, tail, variables
from amp_migrate.facts.scopes import assigned
from amp_migrate.facts.variables import put_in
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.project import CallSite, Function, Module
from amp_migrate.project.once import kept
from amp_migrate.project.reach import where_set
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.run.remembered.aliases import aliases_of, by_both
from amp_migrate.training.bindings import own_part

_Place = tuple[Function, ast.AST]


@dataclass
class _Led:
    """What is asked in every run of a program: the tests around nodes, and whether these let them run by what is known."""

    tests: dict[_Place, list[tuple[ast.expr, bool]] | None] = field(default_factory=dict)
    passed: dict[tuple[Assumption, _Place], bool] = field(default_factory=dict)


class Enabled:
    """Evaluates expressions under an assumption: GradScalers by what makes them, parameters by what calls give."""

    def __init__(self, program: Program, known: Facts, made: Facts) -> None:
        self._program = program
        self._project = program.project
        self._known = known
        self._made = made
        self._asked: set[ast.AST] = set()
        self._aliases = aliases_of(program.project)
        self._holds: dict[tuple[bool, Function], Assumption] = {}
        self._led = kept(program.project, (Enabled, program), _Led)
        always = kept(
            program.project,
            (Always, program),
            lambda: Always(program.project, partial(_tests, program)),
        )
        self._unbound = Unbound(program.project, self.reached, always)

    def truth(self, function: Function, node: ast.expr) -> bool | None:
        """Return whether an expression of a function counts as true; None where that is not known."""
        return self._truth(function, self._settled(function, node), self._known, frozenset())

    def reached(self, function: Function, node: ast.AST) -> bool:
        """Tell whether the branches around a node may be taken, and some path leads to it."""
        place = function, node
        if place not in self._led.tests:
            self._led.tests[place] = _tests(self._program, *place)
        tests = self._led.tests[place]
        if not tests:
            return tests is not None
        known = self._holding(self._known, function)
        asked = known, place
        if asked not in self._led.passed:
            self._led.passed[asked] = not any(evaluate(t, known) is (not way) for t, way in tests)
        if not self._led.passed[asked] or not self._known.failed:
            return self._led.passed[asked]
        failing = (test for test, way in tests if self._known.told(function, test) is (not way))
        return not any(evaluate(test, known) is None for test in failing)

    def may_run(self, function: Function, node: ast.AST) -> bool:
        """Tell whether the branches around a node may be taken, whatever holds what their tests ask."""
        tests = self._led.tests.get((function, node)) or _tests(self._program, function, node)
        return self.reached(function, node) and not any(
            self.truth(function, test) is (not way) for test, way in tests or ()
        )

    def runs(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call may be reached, and what it reads may have a value then."""
        return self.reached(function, call) and not self._unbound.reads(function.module, call)

    @cached_property
    def makers(self) -> list[tuple[Function, ast.Call]]:
        """Return the calls that make a GradScaler."""
        return [
            (self._project.function_of(module, call), call)
            for module, call in self._program.training.objects.made_scalers
        ]

    def on(self, function: Function, made: ast.Call) -> bool | None:
        """Return whether a GradScaler is made to be on."""
        enabled = argument(made, "enabled")
        if enabled is None:
            return None if any(k.arg is None for k in made.keywords) else True
        self._asked.add(made)
        settled = self._settled(function, enabled)
        self._asked.discard(made)
        return self._truth(function, settled, self._made, frozenset())

    def _truth(
        self, function: Function, node: ast.expr, known: Facts, above: frozenset[Function]
    ) -> bool | None:
        found = evaluate(node, self._holding(known, function))
        if found is None and function not in above:
            found = self._of_parts(function, node, known, above)
        if found is not None or function in above or not self._is_given(function, node):
            return found
        sites = [s for s in self._project.calls_of(function) if self.reached(s.function, s.call)]
        truths = {self._at(site, function, node, known, above | {function}) for site in sites}
        return truths.pop() if len(truths) == 1 else None

    def _holding(self, known: Facts, function: Function) -> Assumption:
        """Return what holds in a function, of what an attribute and a variable share by both of their names."""
        key = known is self._known, function
        if key not in self._holds:
            self._holds[key] = by_both(known.at(function), self._aliases.of(function))
        return self._holds[key]

    def _of_parts(
        self, function: Function, node: ast.expr, known: Facts, above: frozenset[Function]
    ) -> bool | None:
        """Return what an expression comes out as by its parts, a variable or attribute as the one value that it holds."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            truth = self._truth(function, node.operand, known, above)
            return None if truth is None else not truth
        if isinstance(node, ast.BoolOp):
            ends = isinstance(node.op, ast.Or)
            truths = [self._truth(function, part, known, above) for part in node.values]
            return ends if ends in truths else None if None in truths else not ends
        value = None if node in self._asked else self._held(function, node)
        if value is None:
            return self._of_holder(function, node, known, above)
        if isinstance(value, ast.Constant):
            return None
        self._asked.add(node)
        maker = self._project.function_of(self._project.module_of(value), value)
        truth = self._truth(maker, self._settled(maker, value), known, above)
        self._asked.discard(node)
        return truth

    def _of_holder(
        self, function: Function, node: ast.expr, known: Facts, above: frozenset[Function]
    ) -> bool | None:
        """Return what a flag comes out as by the one path that what it is taken from holds: ``self.args.half``."""
        for part in _taken_from(node):
            value = None if part in self._asked else self._held(function, part)
            if isinstance(value, ast.Name | ast.Attribute | ast.Subscript):
                self._asked.add(part)
                maker = self._project.function_of(self._project.module_of(value), value)
                truth = self._truth(maker, with_parts(node, {part: value}), known, above)
                self._asked.discard(part)
                return truth
        return None

    def _held(self, function: Function, node: ast.expr) -> ast.expr | None:
        """Return the one value that a variable or attribute is assigned, its own part of a tuple that is taken apart."""
        module = function.module
        if node not in module.tree.parents:
            return None
        stored: list[tuple[Module, ast.AST]] = []
        if isinstance(node, ast.Name):
            stored = [(module, binding) for binding in module.scopes.bound(node)]
        elif isinstance(node, ast.Attribute):
            same = self._project.values.same
            sets = where_set(self._project, node.attr)
            stored = [(m, n) for m, n in sets if same(module, node.value, m, n.value)]
        if len(stored) != 1:
            return None
        where, binding = stored[0]
        value = assigned(where.tree, binding)
        if value is None and isinstance(statement := where.tree.statement(binding), ast.Assign):
            whole = statement.value
            part = own_part(self._project, where, binding, whole)
            value = part if part is not whole else None
        return value

    def _at(
        self,
        site: CallSite,
        function: Function,
        node: ast.expr,
        known: Facts,
        above: frozenset[Function],
    ) -> bool | None:
        """Return what an expression of parameters comes out as for the arguments of a call."""
        given = self._project.arguments(site, function)
        defaults = function.parameters.defaults
        values = {name: given.get(name, defaults.get(name)) for name in variables(node)}
        if any(value is None for value in values.values()):
            return None
        settled = {n: self._settled(site.function, v) for n, v in values.items() if v is not None}
        return self._truth(site.function, put_in(node, settled), known, above)

    def _is_given(self, function: Function, node: ast.expr) -> bool:
        """Tell whether an expression depends on parameters of a function alone, which it never binds anew."""
        names = variables(node)
        scopes = function.module.scopes
        return bool(names) and all(
            name in function.parameters.names
            and all(isinstance(b, ast.arg) for b in scopes.bindings(function.scope, name))
            for name in names
        )

    def _settled(self, function: Function, node: ast.expr) -> ast.expr:
        """Return an expression with what is known of its calls of ``scaler.is_enabled()`` in their place.

        So are those that methods and properties give which do nothing else.
        """
        asked = {
            part: self._of_scaler(function, part)
            if isinstance(part, ast.Call) and asks_scaler(part)
            else self._given_by(part)
            for part in every(node)
            if isinstance(part, ast.Call | ast.Attribute)
        }
        known: dict[ast.AST, ast.expr] = {
            part: ast.Constant(truth) for part, truth in asked.items() if truth is not None
        }
        return with_parts(node, known) if known else node

    def _given_by(self, node: ast.Call | ast.Attribute) -> bool | None:
        """Return what a scaler says of which methods or properties tell alone whether it is on."""
        giving = self._giving.get(node.attr, []) if isinstance(node, ast.Attribute) else []
        if isinstance(node, ast.Call):
            giving = [f for f in self._project.callees(node) if not f.is_property]
        found: set[bool | None] = set()
        for function in giving if node not in self._asked else ():
            given = function.given
            self._asked.add(node)
            asks = isinstance(given, ast.Call) and asks_scaler(given)
            found.add(self._of_scaler(function, given) if asks else None)  # type: ignore[arg-type]
            self._asked.discard(node)
        return found.pop() if len(found) == 1 else None

    @cached_property
    def _giving(self) -> dict[str, list[Function]]:
        """The properties of a project by their names."""
        found: dict[str, list[Function]] = {}
        for function in self._project.functions():
            if function.is_property:
                found.setdefault(function.name, []).append(function)
        return found

    def _of_scaler(self, function: Function, node: ast.Call) -> bool | None:
        """Return what ``scaler.is_enabled()`` comes out as, from what the scaler is made with."""
        if node in self._asked:
            return None
        assert isinstance(node.func, ast.Attribute)
        objects = self._program.training.objects
        groups = objects.groups(function.module, node.func.value)
        self._asked.add(node)
        found = {
            self.on(maker, call)
            for maker, call in self.makers
            if call not in self._asked and objects.groups(maker.module, call) & groups
        }
        self._asked.discard(node)
        return found.pop() if len(found) == 1 else None


def asks_scaler(node: ast.expr) -> bool:
    """Tell whether an expression asks a GradScaler whether it is on."""
    return isinstance(node, ast.Call) and tail(node) == "is_enabled"


def _taken_from(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the paths that a flag is an attribute, an item or an entry of, and those that a test compares."""
    if isinstance(node, ast.Compare):
        yield from outward(node.left)
    elif isinstance(node, ast.Attribute | ast.Subscript):
        yield from outward(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from outward(node.func.value)


def _tests(
    program: Program, function: Function, node: ast.AST
) -> list[tuple[ast.expr, bool]] | None:
    """Return the tests around a node, with how they come out where it runs; None where no path leads to it."""
    graph = program.graph(function)
    points = graph.at(node)
    if points and not any(map(graph.order().reachable, points)):
        return None
    return list(guards(function, node))
