"""Whether a `backward` of the project's own is cast: Apex cast in it, and autocast is off there unless it says otherwise."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.differing import CAST, UNCAST, differs
from amp_migrate.check.events.claims import OWN_BACKWARD, Claims
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.project import Function, Project
from amp_migrate.project.programs import files_of
from amp_migrate.protocol.faults import Place
from amp_migrate.training.forwards.own_backward import cast_backwards, naming
from amp_migrate.training.steps import differentiates

_ON = frozenset({Casts.ON})


@dataclass(frozen=True, eq=False, slots=True)
class OwnBackwards:
    """Compares both texts, each class by the name of its `backward`."""

    old: Side
    new: Side

    def differences(
        self, native: Casting, begun: Mapping[Function, Iterable[Casts]], claims: Claims
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield what is cast in such methods on one side alone; `begun` is where casts may be on in the new text."""
        before = {key(own.backward): own for own in cast_backwards(self.old.project)}
        if not before:
            return
        modules = {f.module for f in begun}
        running = {path for each in modules for path in files_of(self.new.project, each)}
        for own in cast_backwards(self.new.project):
            was = before.pop(key(own.backward), None)
            node = was.backward.node if was is not None else None
            if was is None or node is None:
                continue
            at = key(was.backward), f"{own.cls.name}.backward()"
            used = {module.path for module in naming(self.new.project, own.cls)}
            if used & running and not self._is_told(claims, at, node):
                yield differs(UNCAST, at, _first(node))
        for name in before:
            for function in self.new.functions.get(name, ()):
                for call in _taking(self.new.project, native, function):
                    yield differs(CAST, (name, ast.unparse(call)), call)

    @staticmethod
    def _is_told(claims: Claims, at: tuple[Key, str], node: ast.AST) -> bool:
        lines = range(getattr(node, "lineno", 0), _first(node).lineno + 1)
        return any(claims.note(OWN_BACKWARD, Place(at[0][0], line)) for line in lines)


def _first(node: ast.AST) -> ast.stmt:
    body: list[ast.stmt] = getattr(node, "body", [])
    return body[0]


def _taking(project: Project, native: Casting, function: Function) -> Iterator[ast.Call]:
    """Yield the calls that take gradients in a method that is cast, and that no block keeps casts from."""
    for call in function.calls:
        if differentiates(project, function.module, call):
            if native.at(function, call, _ON) is Casts.ON:
                yield call
