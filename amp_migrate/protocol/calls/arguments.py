"""What calls give for the parameters of functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeGuard

from amp_migrate.flow.assumption import Assumption, Known
from amp_migrate.flow.terms import Term
from amp_migrate.project import Function, Project
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.events import Event

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Arguments:
    """Tells what each call of a program gives for a parameter, and which parameters concern events."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._project = program.project
        self._bindings: dict[tuple[ast.Call, Function], Mapping[str, ast.expr]] = {}

    def given(self, call: ast.Call, callee: Function) -> Mapping[str, ast.expr]:
        """Return the arguments of a call by the names of the parameters that take them."""
        found = self._bindings.get((call, callee))
        if found is None:
            found = self._bindings[call, callee] = self._project.given(call, callee)
        return found

    def parameters(self, of: Callable[[Event], str | None]) -> dict[Function, set[str]]:
        """Return the parameters of functions that events name, there or in what those call."""
        found: dict[Function, set[str]] = {}
        for function, events in self._program.training.by_function.items():
            named = {of(event) for held in events.values() for event in held}
            parameters = {name for name in function.parameters.names if name in named}
            if parameters:
                found[function] = parameters
        queue = list(found)
        while queue:
            function = queue.pop()
            for site in self._project.calls_of(function):
                given = self.given(site.call, function)
                handed = [given.get(name) for name in found[function]]
                names = {node.id for node in handed if is_variable(node, self._project)}
                more = names & set(site.function.parameters.names)
                if not more <= found.setdefault(site.function, set()):
                    found[site.function] |= more
                    queue.append(site.function)
        return found


def is_variable(node: ast.AST | None, project: Project) -> TypeGuard[ast.Name]:
    """Tell whether an expression is a variable of a function, not one of a comprehension, which may have its name."""
    if not isinstance(node, ast.Name):
        return False
    return not isinstance(project.module_of(node).scopes.owner(node), _COMPREHENSIONS)


def known_value(known: Assumption, term: Term) -> object:
    """Return what a term is known to be; None where it is not."""
    found = known.get(term)
    return found.value if isinstance(found, Known) else None


def numbers(known: Assumption, term: Term) -> frozenset[int] | None:
    """Return the numbers that a term is known to be; None where it is not."""
    found = known_value(known, term)
    return frozenset(found) if isinstance(found, tuple) else None
