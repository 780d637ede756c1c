"""What clears gradients: ``zero_grad()``, ``p.grad = None``, ``p.grad.zero_()``, in loops and in helpers."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import root, stored, variables
from amp_migrate.facts.tree import Tree
from amp_migrate.flow import Kind, Point
from amp_migrate.project import Function, Project
from amp_migrate.project.once import once
from amp_migrate.project.rounds import graph_of
from amp_migrate.training.gradients.handed_out import bases
from amp_migrate.training.origins.meant import held
from amp_migrate.training.origins.reaching import reaching
from amp_migrate.training.reads.named_methods import NamedMethods

_OF_OPTIMIZER = frozenset({"zero_grad", "zero_none_grad"})
_LISTS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)
_Visit = ast.For | ast.AsyncFor | ast.comprehension


def clears(node: ast.AST) -> bool:
    """Tell whether a node itself clears a gradient, or those of a network or optimizer."""
    if _is_zeroing(node):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "zero_" and _is_gradient(node.func.value)
    if isinstance(node, ast.Assign):
        return _is_nothing(node.value) and any(map(_is_gradient, node.targets))
    return isinstance(node, ast.Delete) and any(map(_is_gradient, node.targets))


def _is_zeroing(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in _OF_OPTIMIZER


def _is_gradient(node: ast.expr) -> bool:
    """Tell whether an expression is a gradient, or shares its memory: ``p.grad.data``, ``p.grad.detach_()``."""
    while isinstance(node, ast.Attribute | ast.Call):
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def _is_nothing(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        return name == "zeros_like"
    return is_none(node)


class Clearing:
    """Tells where the functions of a project clear gradients, themselves or through what they call."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._always: dict[Function, bool] = {}
        self._ever: dict[Function, bool] = {}
        self._named_methods = NamedMethods(project, reaching(project))

    def nodes(self, function: Function) -> Iterator[ast.AST]:
        """Yield what clears gradients in a function: whole loops where one visits what it clears."""
        tree = function.module.tree
        for node in function.own_nodes:
            if clears(node) or (isinstance(node, ast.Call) and self.calls(node)):
                found = _visiting(tree, node)
                if found is not None:
                    yield found

    def of_parameters(
        self, function: Function, around: tuple[Function, ...] = ()
    ) -> Iterator[ast.AST]:
        """Yield what clears the gradients of a network or an optimizer, not of a tensor by itself."""
        for node in self.nodes(function):
            asked = isinstance(node, _Visit) and any(bases(function.module, node.iter, set()))
            if asked or any(map(_is_zeroing, ast.walk(node))):
                yield node
            elif isinstance(node, ast.Call) and function not in around:
                inner = list(self._project.callees(node))
                if all(self._clears_parameters(f, (*around, function)) for f in inner):
                    yield node

    def _clears_parameters(self, function: Function, around: tuple[Function, ...]) -> bool:
        return len(list(self.of_parameters(function, around))) == len(list(self.nodes(function)))

    def calls(self, call: ast.Call) -> bool:
        """Tell whether a call always clears gradients, whatever it reaches."""
        callees = list(self._project.callees(call))
        if callees:
            return all(map(self.always, callees))
        return self._runs_methods(call) or self._runs_lambda(call)

    def _runs_methods(self, call: ast.Call) -> bool:
        """Tell whether a call runs a method by another name, whichever it is, that clears gradients."""
        if call not in self._project.values.methods_called:
            return False
        function = self._project.function_of(self._project.module_of(call), call)
        methods = self._named_methods.run(function, call)
        return all(method.node.attr in _OF_OPTIMIZER for method in methods)

    def _runs_lambda(self, call: ast.Call) -> bool:
        """Tell whether a call runs a lambda, whatever it reaches, that always clears gradients."""
        if not isinstance(call.func, ast.Name) or call not in self._of_lambdas:
            return False
        found = list(held(self._project, self._project.module_of(call), call.func))
        return bool(found) and all(
            isinstance(v, ast.Lambda) and self._clears_at_once(v.body) for v in found
        )

    def _clears_at_once(self, value: ast.expr) -> bool:
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
        return any(
            clears(part) or (isinstance(part, ast.Call) and self.calls(part)) for part in parts
        )

    @cached_property
    def _of_lambdas(self) -> frozenset[ast.Call]:
        """The calls that may run a lambda."""
        calls = self._project.values.calls_of_lambdas.values()
        return frozenset(call for sites in calls for _, call in sites)

    def always(self, function: Function) -> bool:
        """Tell whether every run of a function clears gradients."""
        known = self._always.get(function)
        if known is None:
            self._always[function] = False
            points = self.points(function) if function.node is not None else []
            graph = graph_of(self._project, function)
            known = bool(points) and graph.order(False).must_reach(graph.entry, points)
            self._always[function] = known
        return known

    def ever(self, function: Function) -> bool:
        """Tell whether some run of a function clears gradients."""
        if function not in self._ever:
            self._ever[function] = False
            self._ever[function] = any(
                any(map(self.ever, self._project.callees(call))) for call in function.calls
            ) or any(True for _ in self.nodes(function))
        return self._ever[function]

    def points(self, function: Function) -> list[Point]:
        """Return the moments at which gradients are clear, in a function."""
        return self.moments(function, self.nodes(function))

    def moments(self, function: Function, nodes: Iterable[ast.AST]) -> list[Point]:
        """Return the moments at which what some nodes clear is clear."""
        graph = graph_of(self._project, function)
        found: list[Point] = []
        for node in nodes:
            visits = isinstance(node, _Visit)
            found += graph.at(node, Kind.NEXT) if visits else graph.within(node)
        return found


@once
def clearing(project: Project) -> Clearing:
    """Return what tells where a project clears gradients; made once."""
    return Clearing(project)


def _visiting(tree: Tree, node: ast.AST) -> ast.AST | None:
    """Return the outermost loop whose items a node clears, or the node; None where a test leaves some out."""
    names = _cleared_names(node)
    found = node
    for up in tree.ancestors(node):
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            break
        loops: list[_Visit] = []
        if isinstance(up, ast.For | ast.AsyncFor):
            loops = [up]
        elif isinstance(up, _LISTS):
            loops = list(reversed(up.generators))
        for loop in loops:
            if names & stored(loop.target):
                if not all(_asks_gradient(test) for test in _tests(tree, found, loop)):
                    return None
                found, names = loop, variables(loop.iter)
    return found


def _cleared_names(node: ast.AST) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node]
    found = {root(target) for target in targets}
    if isinstance(node, ast.Call):
        found |= {root(argument) for argument in node.args}
    return {name for name in found if name is not None}


def _tests(tree: Tree, node: ast.AST, loop: ast.AST) -> Iterator[ast.expr]:
    """Yield the tests between a node and a loop around it."""
    if isinstance(loop, ast.comprehension):
        yield from loop.ifs
    for up in tree.ancestors(node):
        if up is loop:
            return
        if isinstance(up, ast.If):
            yield up.test


def _asks_gradient(test: ast.expr) -> bool:
    return any(
        isinstance(part, ast.Attribute) and part.attr in ("grad", "requires_grad")
        for part in ast.walk(test)
    )
