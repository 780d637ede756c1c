"""Tests that a function answers: ``if self.at_boundary(i):`` asks what that method returns."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from amp_migrate.facts.below import every, with_parts
from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import path
from amp_migrate.facts.variables import put_in
from amp_migrate.project import Function, Project
from amp_migrate.protocol.calls.renaming import same_names
from amp_migrate.training.origins.constants import constant_of
from amp_migrate.training.origins.reaching import reaching

_DEEPEST = 3  # functions that answer by what others answer


class Answers:
    """Spells tests with what the functions return that they ask, where one expression is all that these hold."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._spelt: dict[ast.expr, ast.expr] = {}

    def spelt(self, test: ast.expr) -> ast.expr:
        """Return a test with the answers in place of the calls; itself where there are none."""
        if test not in self._spelt:
            self._spelt[test] = self._answered(test, _DEEPEST)
        return self._spelt[test]

    def _answered(self, test: ast.expr, deepest: int) -> ast.expr:
        calls = [n for n in every(test) if isinstance(n, ast.Call)] if deepest else []
        found: dict[ast.AST, ast.expr] = {
            call: answer for call in calls if (answer := self._answer(call, deepest))
        }
        found |= self._numbers(test)
        return with_parts(test, found) if found else test

    def _numbers(self, test: ast.expr) -> dict[ast.AST, ast.expr]:
        """Return the constants of files and classes in a test that counts, each with its number, but for what it counts by."""
        counts = [n for n in every(test) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod)]
        by = {path(part) for n in counts for part in every(n.right)}
        named = (n for n in every(test) if isinstance(n, ast.Name | ast.Attribute))
        parts = [n for n in named if path(n) not in by]
        found: dict[ast.AST, ast.expr] = {}
        for part in parts if counts else ():
            function = self._function(part)
            if function is None or _is_local(function, part):
                continue
            reached = reaching(self._project)
            known = constant_of(self._project, reached, function, part, through_calls=False)
            if known is not None and type(known.value) in (int, float):
                found[part] = known
        return found

    def _function(self, node: ast.expr) -> Function | None:
        """Return the function in which an expression stands; None for one that was put together."""
        try:
            return self._project.holder(node)
        except KeyError:
            return None

    def _answer(self, call: ast.Call, deepest: int) -> ast.expr | None:
        callees = self._project.callees(call)
        if len(callees) != 1:
            return None
        callee = callees[0]
        answer = _only(callee)
        if answer is None:
            return None
        given = self._given(call, callee)
        read = {n.id for n in every(answer) if isinstance(n, ast.Name)}
        same = read - given.keys() and same_names(self._project, call, callee)
        own = set(callee.parameters.names)
        if not read - given.keys() <= set(same) - own:
            return None
        return put_in(self._answered(answer, deepest - 1), given)

    def _given(self, call: ast.Call, callee: Function) -> Mapping[str, ast.expr]:
        """Return what a call gives for the parameters of a function, and the object for its first one."""
        given = {**callee.parameters.defaults, **self._project.given(call, callee)}
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        if callee.receiver is not None and held is not None and path(held) is not None:
            given[callee.receiver] = held
        return given


def _is_local(function: Function, node: ast.expr) -> bool:
    scopes = function.module.scopes
    return isinstance(node, ast.Name) and scopes.owner(node) is function.scope


def _only(function: Function) -> ast.expr | None:
    """Return the expression that is all of a function, its text apart; None where there is more."""
    node = function.node
    if not isinstance(node, ast.FunctionDef) or function.is_class or node.decorator_list:
        return None
    body = [s for s in node.body if not isinstance(s, ast.Expr) or string(s.value) is None]
    if len(body) != 1 or not isinstance(body[0], ast.Return):
        return None
    return body[0].value
