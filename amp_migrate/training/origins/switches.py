"""Switches that no run throws: names that hold the same bool wherever a function is entered."""

from __future__ import annotations

import ast
from functools import cached_property

from amp_migrate.flow import Paths, cautious, keeping
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import assume
from amp_migrate.project import Function, Project
from amp_migrate.project.once import once
from amp_migrate.project.reach import where_set
from amp_migrate.project.rounds import graph_of
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.origins.constants import constant_of
from amp_migrate.training.origins.reaching import reaching

_WRITERS = frozenset({"exec", "globals", "setattr"})


def truth(project: Project, function: Function, test: ast.expr) -> bool | None:
    """Return how a test of a function comes out in every run, as far as switches tell."""
    return evaluate(test, _known(project).entered(function))


def feasible(project: Project, function: Function) -> Paths:
    """Return the ways through a function on which no switch comes out otherwise than in every run."""
    return _known(project).paths(function)


def entered(project: Project, function: Function) -> Assumption:
    """Return what switches say where a function is entered, in every run."""
    return _known(project).entered(function)


@once
def _known(project: Project) -> _Switches:
    return _Switches(project)


class _Switches:
    def __init__(self, project: Project) -> None:
        self._project = project
        self._reaching = reaching(project)
        self._entered: dict[Function, Assumption] = {}
        self._paths: dict[Function, Paths] = {}

    def paths(self, function: Function) -> Paths:
        if function not in self._paths:
            known = self.entered(function)
            graph = graph_of(self._project, function)
            changes = keeping(cautious(graph), {fact.term.text for fact in known.facts})
            self._paths[function] = Paths(graph, known, changes=changes, exceptions=False)
        return self._paths[function]

    def entered(self, function: Function) -> Assumption:
        """Return what is known where a function is entered, and stays so in it."""
        if function not in self._entered:
            tested = {name.id: name for name in _tested(function)}
            found = {text: self._at_entry(function, name) for text, name in tested.items()}
            # A number at the top of a script is there to be changed by hand.
            values = {text: v.value for text, v in found.items() if v and isinstance(v.value, bool)}
            self._entered[function] = assume(values, NOTHING) if values else NOTHING
        return self._entered[function]

    def _at_entry(self, function: Function, name: ast.Name) -> ast.Constant | None:
        """Return what a name that the function itself never binds anew is in every run."""
        scopes = function.module.scopes
        scope = scopes.owner(name)
        if scope is function.scope and not isinstance(scope, ast.Module):
            bound = scopes.bound(name)
            if len(bound) == 1 and isinstance(
                value := bound_value(function.module, bound[0]), ast.Constant
            ):
                return value
            if not all(isinstance(b, ast.arg) for b in bound):
                return None
        elif isinstance(scope, ast.Module):
            if (
                len(scopes.bound(name)) != 1
                or where_set(self._project, name.id)
                or self._is_written
            ):
                return None
        return constant_of(self._project, self._reaching, function, name)

    @cached_property
    def _is_written(self) -> bool:
        """Whether some code writes variables of files in ways that do not name them."""
        return any(node.id in _WRITERS for _, node in self._project.nodes(ast.Name))


def _tested(function: Function) -> list[ast.Name]:
    tests = [n.test for n in function.own_nodes if isinstance(n, ast.If | ast.IfExp | ast.While)]
    return [n for test in tests for n in ast.walk(test) if isinstance(n, ast.Name)]
