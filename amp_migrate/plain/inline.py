"""Calls of functions that return a call of Apex, as that call: ``def scaled(loss): return amp.scale_loss(loss, optimizer)``."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass

from amp_migrate.apex.passthrough import given, is_passthrough
from amp_migrate.apex.sites import AMP_CALLS
from amp_migrate.facts.paths import acts, path, spreads
from amp_migrate.modules.binding import bind, fits
from amp_migrate.modules.definitions import parameters_of
from amp_migrate.plain.held import Holding
from amp_migrate.project import Anonymous, CallSite, Function

_Body = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class Inlined:
    """A call, what stands for it, the call of Apex that is returned, and the function that has it."""

    call: ast.Call
    text: str
    returned: ast.Call
    function: _Body


class Inlining:
    """Writes the calls of one file out of the functions that only return one of Apex."""

    def __init__(self, holding: Holding) -> None:
        self._project, self._module = holding.project, holding.module

    def of(self, call: ast.Call) -> Inlined | None:
        """Return what a call of such a function means; None for any other call."""
        node = self._called(call)
        function = self._function(node) if node is not None else None
        inner = self._returned(function) if function is not None else None
        if node is None or function is None or inner is None or not self._is_plain(call, function):
            return None
        site = CallSite(self._project.function_of(self._module, call), call)
        if not fits(site, function) or function.parameters.keyword_only:
            return None
        passed = bind(site, function)
        if set(passed.given) != set(function.parameters.required()):
            return None
        given = {name: [value] for name, value in passed.given.items()}
        if function.parameters.vararg is not None:
            given[function.parameters.vararg] = passed.extra
        named = passed.keywords if function.parameters.kwarg is not None else {}
        names = [n for n in ast.walk(inner) if isinstance(n, ast.Name)]
        if not self._may_move(inner, given, named) or not self._means_the_same(call, names, given):
            return None
        if not self._is_apex(inner, passed.given):
            return None
        if isinstance(node, ast.FunctionDef) and self._project.escapes(function):
            return None
        text = self._text(inner, passed.given, passed.extra, named, function)
        return Inlined(call, text, inner, node) if text is not None else None

    def _called(self, call: ast.Call) -> _Body | None:
        """Return the function or lambda that a name in this file is bound to, and nothing else."""
        if not isinstance(call.func, ast.Name):
            return None
        found = self._module.scopes.bound(call.func)
        if len(found) != 1 or not isinstance(found[0], ast.FunctionDef):
            value = self._module.scopes.only_value(call.func)
            return value if isinstance(value, ast.Lambda) else None
        return None if found[0].decorator_list else found[0]

    def _function(self, node: _Body) -> Function | None:
        if isinstance(node, ast.FunctionDef):
            return self._module.functions.get(node)
        around = self._project.function_of(self._module, node)
        return Anonymous(
            self._module,
            None,
            f"{around.qualname}.<lambda>",
            parent=around,
            parameters=parameters_of(node.args),
            body=node,
        )

    def _returned(self, function: Function) -> ast.Call | None:
        """Return the call that a function or lambda returns, where it does nothing else."""
        value = given(self._project, function)
        if not isinstance(value, ast.Call):
            return None
        return None if acts(value, ast.Lambda, ast.comprehension) else value

    def _is_plain(self, call: ast.Call, function: Function) -> bool:
        return not (spreads(call) or is_passthrough(self._project, function))

    def _is_apex(self, inner: ast.Call, given: dict[str, ast.expr]) -> bool:
        """Tell whether the returned call is one of Apex, or of a function that hands on to it."""
        func = inner.func
        if isinstance(func, ast.Name) and func.id in given:
            func = given[func.id]
        name = self._project.apex(self._module, func)
        if name is None and isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            base = given.get(func.value.id)
            amp = self._project.apex(self._module, base) if base is not None else None
            name = f"{amp}.{func.attr}" if amp is not None else None
        if name is not None:
            return name.removeprefix("apex.amp.") in AMP_CALLS
        reached = self._project.callees(inner)
        return bool(reached) and all(is_passthrough(self._project, f) for f in reached)

    def _may_move(
        self, inner: ast.Call, given: dict[str, list[ast.expr]], named: dict[str, ast.expr]
    ) -> bool:
        """Tell whether the arguments may be evaluated where the parameters stand."""
        used = Counter(name.id for name in ast.walk(inner) if isinstance(name, ast.Name))
        busy = [
            used[name]
            for name, values in given.items()
            for value in values
            if not isinstance(value, ast.Constant) and path(value) is None
        ]
        busy += [
            1
            for value in named.values()
            if path(value) is None and not isinstance(value, ast.Constant)
        ]
        if not busy and sum(isinstance(n, ast.Call) for n in ast.walk(inner)) == 1:
            return True
        others = [v for values in given.values() for v in values] + list(named.values())
        calm = sum(isinstance(v, ast.Name | ast.Constant) for v in others)
        return busy in ([], [1]) and calm == len(others) - len(busy)

    def _means_the_same(
        self, call: ast.Call, names: list[ast.Name], given: dict[str, list[ast.expr]]
    ) -> bool:
        """Tell whether the other names of a returned call are the same variables at the call."""
        scopes = self._module.scopes
        here = scopes.scope_of(call)
        return all(
            name.id in given or name.id == self._kwarg(name) or scopes.sees(here, name)
            for name in names
        )

    def _kwarg(self, name: ast.Name) -> str | None:
        return self._project.function_of(self._module, name).parameters.kwarg

    def _text(
        self,
        inner: ast.Call,
        given: dict[str, ast.expr],
        extra: list[ast.expr],
        named: dict[str, ast.expr],
        function: Function,
    ) -> str | None:
        tree, parameters = self._module.tree, function.parameters

        def text(node: ast.expr) -> str:
            parts = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in given]
            return tree.segment(node, {n: tree.segment(given[n.id]) for n in parts})

        written: list[str] = []
        for argument in inner.args:
            if isinstance(argument, ast.Starred):
                if path(argument.value) != parameters.vararg:
                    return None
                written += map(tree.segment, extra)
            else:
                written.append(text(argument))
        for keyword in inner.keywords:
            if keyword.arg is not None:
                written.append(f"{keyword.arg}={text(keyword.value)}")
            elif path(keyword.value) != parameters.kwarg:
                return None
            else:
                written += (f"{name}={tree.segment(value)}" for name, value in named.items())
        found = f"{text(inner.func)}({', '.join(written)})"
        loose = {parameters.vararg, parameters.kwarg} - {None}
        inside = [n for a in [*inner.args, *inner.keywords] for n in ast.walk(a)]
        stars = [n for n in inside if isinstance(n, ast.Name) and n.id in loose]
        whole = len(stars) == len(loose) or (not extra and not named)
        return found if whole and "\n" not in found and "#" not in found else None
