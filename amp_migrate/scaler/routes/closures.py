"""A wrapper's ``step(self, closure=None)`` that hands on a closure which nobody gives it."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import sets
from amp_migrate.project import Function, Project
from amp_migrate.training.steps import Step


def never_given(project: Project, step: Step) -> bool:
    """Tell whether all that a step is given is a parameter of its function that is None in every call."""
    arguments = step.call.args
    if step.call.keywords or len(arguments) != 1:
        return False
    return _is_none(project, step.function, arguments[0], set())


def _is_none(
    project: Project, function: Function, given: ast.expr | None, seen: set[Function]
) -> bool:
    if given is None or is_none(given):
        return True
    if not isinstance(given, ast.Name) or not _stays_none(function, given.id):
        return False
    if function in seen:
        return True
    if any(project.escapes(function)):
        return False
    return all(
        _is_none(
            project,
            call.function,
            project.arguments(call, function).get(given.id),
            {*seen, function},
        )
        for call in project.calls_of(function)
    )


def _stays_none(function: Function, name: str) -> bool:
    """Tell whether a parameter is None by default, and nothing in the function binds its name again."""
    default = function.parameters.defaults.get(name)
    return is_none(default) and not sets(function.scope, name)
