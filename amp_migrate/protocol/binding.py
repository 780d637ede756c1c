"""Whether every path binds the name of a GradScaler before it reads it, with AMP on or off."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from amp_migrate.facts.scopes import ScopeNode
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.flow.paths import Paths
from amp_migrate.flow.terms import Operand
from amp_migrate.project import Function, Module
from amp_migrate.protocol.attributes import never_set, read_early, tests_above, unset_attributes
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.faults import Breach, Fault, Place
from amp_migrate.protocol.run.memory import Memory

_FROM_OUTSIDE = frozenset({"GeneratorExit", "KeyboardInterrupt", "StopIteration", "SystemExit"})


class Variable(NamedTuple):
    """A name of a GradScaler, with the scope that binds it."""

    module: Module
    scope: ScopeNode
    name: str

    def stands_at(self, point: Point) -> bool:
        """Tell whether a point loads, stores or deletes the variable."""
        node = point.node
        if not isinstance(node, ast.Name) or node.id != self.name:
            return False
        return self.module.scopes.owner(node) is self.scope


def unbound(program: Program, memory: Memory) -> Iterator[Fault]:
    """Yield a fault for every name of a GradScaler that some path reads before it is made."""
    binding = Binding(program, memory)
    for variable in binding.variables():
        load = binding.read_early(variable)
        if load is not None:
            place = Place(variable.module.path, load.lineno)
            yield Fault(Breach.UNBOUND, place, (place,))
    for module, node in (*unset_attributes(program), *read_early(program), *never_set(program)):
        place = Place(module.path, node.lineno)
        yield Fault(Breach.UNBOUND, place, (place,))


class Binding:
    """Follows the variables of a program that hold GradScalers."""

    def __init__(self, program: Program, memory: Memory) -> None:
        self._program = program
        self._memory = memory
        self._paths: dict[Function, Paths] = {}

    def variables(self) -> list[Variable]:
        """Return the names that functions bind to GradScalers, parameters apart."""
        found: dict[Variable, None] = {}
        for module, node in self._program.project.nodes(ast.Name):
            if isinstance(node.ctx, ast.Store) and self._holds_scaler(module, node):
                scope = module.scopes.owner(node)
                if scope in module.functions:
                    found[Variable(module, scope, node.id)] = None
        return [v for v in found if not self._is_parameter(v)]

    def _holds_scaler(self, module: Module, node: ast.Name) -> bool:
        return self._program.training.objects.scaler(module, node) is not None

    def _is_parameter(self, variable: Variable) -> bool:
        bindings = variable.module.scopes.bindings(variable.scope, variable.name)
        return any(isinstance(b, ast.arg) for b in bindings)

    def read_early(self, variable: Variable) -> ast.Name | None:
        """Return a read of a variable that a path comes to without binding it; None if there is none."""
        for function in self._holders(variable):
            found = self._read_early(variable, function, frozenset())
            if found is not None:
                return found
        return None

    def _holders(self, variable: Variable) -> list[Function]:
        """Return where a variable begins unbound: its scope, and what begins a program when only functions set it."""
        owner = variable.module.functions[variable.scope]
        mine = any(self._stores(variable, p) for p in self._program.graph(owner).points)
        if mine or owner.node is not None:
            return [owner]
        return [f for f, called in self._program.entries if called and f.module is variable.module]

    def _read_early(
        self, variable: Variable, function: Function, above: frozenset[Function]
    ) -> ast.Name | None:
        graph = self._program.graph(function)
        above = above | {function}
        stores = [p for p in graph.points if self._sets(variable, p, above)]
        blocked = [*stores, *self._out_of_reach(function)]
        paths = self._walk(function)
        starts = [p for p in graph.points if p.kind is Kind.DELETE and variable.stands_at(p)]
        for point in graph.points:
            load = self._load(variable, point, above)
            if load is None:
                continue
            if function.scope is not variable.scope and self._goes_together(variable, load):
                continue
            if any(not paths.must_pass(at, point, blocked) for at in (graph.entry, *starts)):
                return load
        return None

    def _walk(self, function: Function) -> Paths:
        if function not in self._paths:

            def changes(point: Point, operand: Operand) -> bool:
                return self._memory.may_change(point, operand)

            graph = self._program.graph(function)
            caught = any(p.kind is Kind.CAUGHT for p in graph.points) or any(
                isinstance(p.node, ast.withitem)
                and self._program.exceptions.swallows(p.node.context_expr)
                for p in graph.points
            )
            self._paths[function] = Paths(graph, changes=changes, exceptions=caught)
        return self._paths[function]

    def _out_of_reach(self, function: Function) -> Iterator[Point]:
        """Yield where handlers begin of exceptions that come from outside of the program."""
        graph = self._program.graph(function)
        for point in graph.points:
            if point.kind is Kind.MATCH and isinstance(point.node, ast.ExceptHandler):
                wanted = point.node.type
                if isinstance(wanted, ast.Name) and wanted.id in _FROM_OUTSIDE:
                    yield graph.successors(point)[0].target

    def _load(
        self, variable: Variable, point: Point, above: frozenset[Function]
    ) -> ast.Name | None:
        """Return the read of a variable at a point, or in a function that runs there."""
        if point.kind is Kind.LOAD and variable.stands_at(point):
            return point.node if isinstance(point.node, ast.Name) else None
        for callee in self._callees(variable, point):
            if callee not in above:
                found = self._read_early(variable, callee, above)
                if found is not None and not self._goes_together(variable, found):
                    return found
        return None

    def _sets(self, variable: Variable, point: Point, above: frozenset[Function]) -> bool:
        """Tell whether a point binds a variable, or runs a function that binds it on every path."""
        if self._stores(variable, point):
            return True
        callees = self._callees(variable, point)
        return bool(callees) and all(self._always_sets(variable, f, above) for f in callees)

    def _always_sets(
        self, variable: Variable, function: Function, above: frozenset[Function]
    ) -> bool:
        if function in above:
            return False
        graph = self._program.graph(function)
        stores = [p for p in graph.points if self._sets(variable, p, above | {function})]
        return bool(stores) and self._walk(function).must_pass(graph.entry, graph.exit, stores)

    def _callees(self, variable: Variable, point: Point) -> list[Function]:
        """Return the functions of a call that can see a variable of another scope."""
        if point.kind is not Kind.CALL or not isinstance(point.node, ast.Call):
            return []
        callees = self._program.calls.of(point.node)
        return [f for f in callees if f.module is variable.module and f.node is not None]

    def _goes_together(self, variable: Variable, load: ast.Name) -> bool:
        """Tell whether the read and the binding of a variable stand under tests of the same names."""
        scopes = variable.module.scopes
        made: set[str] = set()
        for binding in scopes.bindings(variable.scope, variable.name):
            made |= tests_above(variable.module, binding)
        return bool(made & tests_above(variable.module, load))

    def _stores(self, variable: Variable, point: Point) -> bool:
        return point.kind is Kind.STORE and variable.stands_at(point)
