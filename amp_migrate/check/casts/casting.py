"""Where casts are on in native code: inside autocast blocks, and in what they call."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from enum import Enum
from functools import cached_property

from amp_migrate.check.casts.assumed import Facts, guards
from amp_migrate.check.casts.initialized import handed, of_one_kind
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.beliefs import AUTOCASTS

_TYPES = {
    "float16": frozenset({"torch.float16", "torch.half"}),
    "bfloat16": frozenset({"torch.bfloat16"}),
}


class Casts(Enum):
    """Whether casts are on at a place."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


class Casting:
    """Follows autocast blocks under an assumption."""

    def __init__(self, program: Program, known: Facts) -> None:
        self._program = program
        self._project = program.project
        self._known = known
        self._within: set[ast.Call] = set()

    def here(self, function: Function, node: ast.AST) -> Casts | None:
        """Return what the blocks of a function around a node say, None where there is none."""
        tree = function.module.tree
        child = node
        for up in tree.ancestors(node):
            if isinstance(up, ast.With | ast.AsyncWith) and child in up.body:
                for item in reversed(up.items):
                    found = self._context(function, item.context_expr)
                    if found is not None:
                        return found
            if up is function.scope and isinstance(up, ast.Lambda):
                return None
            if up is function.node:
                for decorator in function.node.decorator_list:
                    found = self._context(function, decorator)
                    if found is Casts.ON:
                        return found
                return None
            child = up
        return None

    def other_dtype(self, function: Function, node: ast.AST, dtype: str) -> bool:
        """Tell whether a block around a node casts to a type of its own, which is not `dtype`."""
        for up in function.module.tree.ancestors(node):
            for item in up.items if isinstance(up, ast.With | ast.AsyncWith) else ():
                call = item.context_expr
                name = isinstance(call, ast.Call) and self._project.external(
                    function.module, call.func
                )
                if isinstance(call, ast.Call) and name in AUTOCASTS:
                    types = [k.value for k in call.keywords if k.arg == "dtype"]
                    if types and not any(
                        self._project.external(function.module, t) in _TYPES[dtype] for t in types
                    ):
                        return True
        return False

    def _context(self, function: Function, node: ast.expr) -> Casts | None:
        call = node if isinstance(node, ast.Call) else None
        name = self._project.external(function.module, call.func if call is not None else node)
        if name in AUTOCASTS and call is not None:
            enabled = next((k.value for k in call.keywords if k.arg == "enabled"), None)
            return Casts.ON if enabled is None else self._enabled(function, enabled)
        if name is not None or (
            call is not None
            and isinstance(call.func, ast.Name)
            and not self._bound(function, call.func)
        ):
            return None
        return self._of_project(call) if call is not None else Casts.UNKNOWN

    def _of_project(self, call: ast.Call) -> Casts | None:
        """Return what the generators that a call makes context managers of enter around their yield."""
        made = self._project.callees(call)
        found: set[Casts | None] = set()
        for function in made:
            yields = [
                p.node
                for p in self._program.graph(function).points
                if isinstance(p.node, ast.Yield)
            ]
            if not yields or call in self._within:
                return Casts.UNKNOWN
            self._within.add(call)
            found |= {self.here(function, node) for node in yields}
            self._within.discard(call)
        return found.pop() if len(found) == 1 else Casts.UNKNOWN

    def _bound(self, function: Function, name: ast.Name) -> bool:
        return function.module.scopes.owner(name) is not None

    def _enabled(self, function: Function, node: ast.expr) -> Casts:
        truth = evaluate(node, self._known.at(function))
        if truth is None and self._program.training.objects.scalers:
            truth = self._of_scaler(function, node)
        return Casts.UNKNOWN if truth is None else Casts.ON if truth else Casts.OFF

    def _of_scaler(self, function: Function, node: ast.expr) -> bool | None:
        """Return what ``scaler.is_enabled()`` comes out as, from what the scaler is made with."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        if node.func.attr != "is_enabled":
            return None
        objects = self._program.training.objects
        groups = objects.groups(function.module, node.func.value)
        found = {
            self.on(maker, call)
            for maker, call in self.makers
            if objects.groups(maker.module, call) & groups
        }
        return found.pop() if len(found) == 1 else None

    @cached_property
    def makers(self) -> list[tuple[Function, ast.Call]]:
        """Return the calls that make a GradScaler."""
        return [
            (self._project.function_of(module, call), call)
            for module, call in self._program.training.objects.made_scalers
        ]

    def on(self, function: Function, made: ast.Call) -> bool | None:
        """Return whether a GradScaler is made to be on."""
        enabled = next((k.value for k in made.keywords if k.arg == "enabled"), None)
        if enabled is None:
            return None if any(k.arg is None for k in made.keywords) else True
        return evaluate(enabled, self._known.at(function))

    def reached(self, function: Function, node: ast.AST) -> bool:
        """Tell whether the branches around a node may be taken."""
        known = self._known.at(function)
        return all(
            evaluate(test, known) is not (not truth) for test, truth in guards(function, node)
        )

    def at(self, function: Function, node: ast.AST, around: frozenset[Casts]) -> Casts:
        """Return whether casts are on at a node of a function that begins with them as `around` says."""
        inside = self.here(function, node)
        if inside is not None:
            return inside
        return next(iter(around)) if len(around) == 1 else Casts.UNKNOWN

    def lacks(self, function: Function, node: ast.AST, around: frozenset[Casts]) -> bool:
        """Tell whether casts are off at a node for one way at least to begin its function."""
        inside = self.here(function, node)
        return inside is Casts.OFF if inside is not None else Casts.OFF in around

    def within(self, functions: Iterable[Function]) -> bool:
        """Tell whether functions have blocks of their own, or call some that have."""
        found = list(functions)
        seen = set(found)
        for function in found:
            for node in ast.walk(function.scope):
                if isinstance(node, ast.withitem) and self._context(function, node.context_expr):
                    return True
                if isinstance(node, ast.Call):
                    more = [f for f in self._project.callees(node) if f not in seen]
                    seen.update(more)
                    found += more
        return False

    def spread(
        self, entries: Iterable[Function], sure: bool = False
    ) -> dict[Function, frozenset[Casts]]:
        """Return whether casts may be on when each function that some entries reach begins.

        With `sure`, calls that may run something else are not followed.
        """
        begins = {entry: frozenset({Casts.OFF}) for entry in entries}
        queue = list(begins)
        while queue:
            function = queue.pop()
            for point in self._program.graph(function).points:
                if not isinstance(point.node, ast.Call):
                    continue
                callees = self._program.calls.run(point.node)
                later = [] if callees or sure else handed(self._program, point.node)
                if not (callees or later) or not self.reached(function, point.node):
                    continue
                if sure and not of_one_kind(callees):
                    continue
                inside = self.here(function, point.node)
                found = begins[function] if inside is None else frozenset({inside})
                certain = found == {Casts.OFF} if later else of_one_kind(callees)
                found = found if certain else frozenset({Casts.UNKNOWN})
                for callee in callees or later:
                    held = begins.get(callee, frozenset())
                    if not found <= held:
                        begins[callee] = held | found
                        queue.append(callee)
        return begins
