"""Loops that go over optimizers: each optimizer meets their bodies once."""

from __future__ import annotations

import ast
from functools import cached_property

from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.events import Event, Kind


class Visits:
    """Asks which loops go over optimizers, and which events concern the one that is visited."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def over_optimizers(self, function: Function, loop: ast.AST) -> bool:
        """Tell whether a loop goes over optimizers: each of them meets its body once."""
        return loop in self._visiting.get(function, ())

    def updates(self, function: Function, loop: ast.AST) -> list[Event]:
        """Return the updates of a scale in the body of a loop: those of the other optimizers come first."""
        events = self._program.training.by_function.get(function, {})
        return [
            event
            for node in ast.walk(loop)
            for event in events.get(node, ())
            if event.kind in (Kind.UPDATE, Kind.SET_SCALE)
        ]

    def of_visited(self, function: Function, event: Event) -> bool:
        """Tell whether an event concerns the optimizer that a loop around it visits."""
        named = event.named()
        return named is not None and any(
            _binds(loop, named) for loop in self._loops(function, event.node)
        )

    @cached_property
    def _visiting(self) -> dict[Function, set[ast.AST]]:
        found: dict[Function, set[ast.AST]] = {}
        for function, events in self._program.training.by_function.items():
            for node, held in events.items():
                for named in filter(None, (event.named() for event in held)):
                    loops = {x for x in self._loops(function, node) if _binds(x, named)}
                    found.setdefault(function, set()).update(loops)
        return found

    def _loops(self, function: Function, node: ast.AST) -> list[ast.For | ast.AsyncFor]:
        ancestors = function.module.tree.ancestors(node)
        return [up for up in ancestors if isinstance(up, ast.For | ast.AsyncFor)]


def _binds(loop: ast.For | ast.AsyncFor, named: ast.expr) -> bool:
    """Tell whether the target of a loop binds a name that an expression reads."""
    bound = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    return any(isinstance(n, ast.Name) and n.id in bound for n in ast.walk(named))
