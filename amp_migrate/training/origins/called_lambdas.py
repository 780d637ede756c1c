"""What the lambdas of a project are given, and which of them a call runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from amp_migrate.project import Anonymous, Function, Project
from amp_migrate.training.origins.reaching import Body
from amp_migrate.values.calling.lambdas import given as passed


class CalledLambdas:
    """Knows the calls of lambdas from both ends; `body` gives the function or lambda in which a node stands."""

    def __init__(self, project: Project, body: Body) -> None:
        self._project = project
        self._body = body

    def run(self, call: ast.Call) -> list[Anonymous]:
        """Return the lambdas that a call may run."""
        return self._by_call.get(call, [])

    def given(
        self, function: Anonymous, parameter: ast.arg
    ) -> Iterator[tuple[Function, ast.expr, ast.Call]]:
        """Yield what a parameter of a lambda is given, and where the lambda is called."""
        for module, call in self._project.values.calls_of_lambdas.get(function.body, ()):
            for name, value in passed(function.body, call):
                if name == parameter.arg:
                    yield self._body(module, value), value, call

    @cached_property
    def _by_call(self) -> dict[ast.Call, list[Anonymous]]:
        found: dict[ast.Call, list[Anonymous]] = {}
        for node, calls in self._project.values.calls_of_lambdas.items():
            run = self._body(self._project.module_of(node), node.body)
            if isinstance(run, Anonymous):
                for _, call in calls:
                    found.setdefault(call, []).append(run)
        return found
