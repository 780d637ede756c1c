"""Loops that go over optimizers, networks or parameters: each of them meets their bodies once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from amp_migrate.facts.below import every
from amp_migrate.facts.paths import stored
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.gradients.used import hands_out
from amp_migrate.training.origins.repeated import visits

_OF_GRADIENTS = (Kind.ZERO_GRAD, Kind.READ_GRAD, Kind.PUT_GRAD, Kind.CHANGE_GRAD)
_Loop = ast.For | ast.AsyncFor | ast.comprehension
_Comprehends = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Visits:
    """Asks which loops go over optimizers, and which events concern the one that is visited."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def over_optimizers(self, function: Function, loop: ast.AST) -> bool:
        """Tell whether a loop goes over optimizers, or what they train: each of them meets its body once."""
        return loop in self._visiting.get(function, ())

    def updates(self, function: Function, loop: ast.AST) -> list[Event]:
        """Return the updates of a scale in the body of a loop: those of the other optimizers come first."""
        events = self._program.training.of(function)
        return [
            event
            for node in every(loop)
            for event in events.get(node, ())
            if event.kind in (Kind.UPDATE, Kind.SET_SCALE)
        ]

    def of_visited(self, function: Function, event: Event) -> bool:
        """Tell whether an event concerns the optimizer that a loop around it visits."""
        named = event.named()
        return named is not None and any(self._going_to(function, event.node, named))

    @cached_property
    def _visiting(self) -> dict[Function, set[ast.AST]]:
        found: dict[Function, set[ast.AST]] = {}
        strange: set[ast.AST] = set()
        for function, events in self._program.training.by_function.items():
            for node, held in events.items():
                loops = found.setdefault(function, set())
                for event in held:
                    if (named := event.named()) is not None:
                        loops.update(self._going_to(function, node, named))
                        if event.kind is Kind.UNSCALE:
                            strange.update(self._not_choosing(function, node, named))
                    elif event.kind is Kind.STEP and (stepped := _subject(node)) is not None:
                        loops.update(self._going_to(function, node, stepped))
                    elif event.kind in _OF_GRADIENTS:
                        around = self._loops(function, node)
                        loops.update(self._over_gradients(function, node, around))
        for function in self._program.relevant:
            for loop in function.all_nodes:
                if isinstance(loop, ast.For) and self._hands_on(function, loop):
                    found.setdefault(function, set()).add(loop)
        return {function: loops - strange for function, loops in found.items()}

    def _going_to(self, function: Function, node: ast.AST, named: ast.expr) -> Iterator[_Loop]:
        """Yield the loops around a node that go over what an event names: of two that bind a name, the inner one."""
        project = self._program.project
        names = {n.id for n in every(named) if isinstance(n, ast.Name)}
        for loop in self._loops(function, node):
            bound = names & stored(loop.target)
            if any(visits(project, function.module, loop, name) for name in bound):
                yield loop
            names -= bound

    def _not_choosing(
        self, function: Function, node: ast.AST, named: ast.expr
    ) -> Iterator[ast.AST]:
        """Yield the loops around a node that have no say in which optimizer it names: each turn meets the same ones."""
        names = {n.id for n in every(named) if isinstance(n, ast.Name)}
        for loop in self._loops(function, node):
            if bound := names & stored(loop.target):
                names -= bound
                names |= {n.id for n in every(loop.iter) if isinstance(n, ast.Name)}
            else:
                yield loop

    def _hands_on(self, function: Function, loop: ast.For) -> bool:
        """Tell whether a loop over parameters leaves their gradients to functions that do nothing else."""
        if not hands_out(loop.iter) and not any(
            isinstance(part, ast.Attribute) and part.attr == "grad" and _binds(loop, part.value)
            for part in every(loop)
        ):
            return False
        events = self._program.training.by_function
        inside = [part for part in every(loop) if isinstance(part, ast.Call)]
        called = {callee for call in inside for callee in self._program.callees(call)}
        own = events.get(function, {})
        held = [event for part in every(loop) for event in own.get(part, ())]
        for callee in called:
            further = callee.all_calls
            if callee not in events or any(map(self._program.callees, further)):
                return False
            held += [event for found in events[callee].values() for event in found]
        return bool(called) and all(event.kind in _OF_GRADIENTS for event in held)

    def _over_gradients(
        self, function: Function, node: ast.AST, around: list[_Loop]
    ) -> Iterator[ast.AST]:
        """Yield the loops over what an event clears or reads the gradients of, which do nothing else."""
        subject = _subject(node)
        for loop in around:
            if subject is None or not _binds(loop, subject):
                continue
            if not self._only_gradients(function, loop):
                return
            yield loop
            subject = _held_by(loop.iter)

    def _only_gradients(self, function: Function, loop: _Loop) -> bool:
        events = self._program.training.of(function)
        inside = list(every(function.module.tree.parents[loop] if _is_part(loop) else loop))
        calls = (part for part in inside if isinstance(part, ast.Call))
        return not any(map(self._program.callees, calls)) and all(
            event.kind in _OF_GRADIENTS for part in inside for event in events.get(part, ())
        )

    def _loops(self, function: Function, node: ast.AST) -> list[_Loop]:
        """Return the loops around a node, the innermost first."""
        found: list[_Loop] = []
        for up in function.module.tree.ancestors(node):
            if isinstance(up, ast.For | ast.AsyncFor):
                found.append(up)
            elif isinstance(up, _Comprehends):
                found += reversed(up.generators)
        return found


def _is_part(loop: _Loop) -> bool:
    return isinstance(loop, ast.comprehension)


def _subject(node: ast.AST) -> ast.expr | None:
    """Return `x` of ``x.grad`` and ``x.zero_grad()``; of ``clear()``, which runs the method that a name holds, the name."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Name):
        return node
    return node.value if isinstance(node, ast.Attribute) else None


def _held_by(over: ast.expr) -> ast.expr | None:
    """Return the name of what a loop goes over the parameters of: `group` of ``group["params"]``."""
    if not hands_out(over):
        return None
    while isinstance(over, ast.Call | ast.Attribute | ast.Subscript):
        over = over.func if isinstance(over, ast.Call) else over.value
    return over if isinstance(over, ast.Name) else None


def _binds(loop: _Loop, named: ast.expr) -> bool:
    """Tell whether the target of a loop binds a name that an expression reads."""
    bound = stored(loop.target)
    return any(isinstance(n, ast.Name) and n.id in bound for n in every(named))
