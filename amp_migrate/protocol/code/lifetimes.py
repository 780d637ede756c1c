"""From where to where an optimizer is there: before it is made, and once what made it has ended, it has no gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import MUTATORS, all_given, tail
from amp_migrate.project import Function
from amp_migrate.project.reach import reachable
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.code.span import Span
from amp_migrate.training.events import Event, Kind
from amp_migrate.values.links.onward import Onward

_GIVES = (ast.Return, ast.Yield, ast.YieldFrom)
_PUTS = MUTATORS | {"setattr"}
_DATA = frozenset({"defaults", "param_groups", "state"})
"""Attributes of an optimizer that do not hold it, as its methods do."""


class Lifetimes:
    """Reads them off the calls of a program, and what its names hold."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._project = program.project
        self._held: dict[int, Onward] = {}
        self._kept: dict[Function, list[ast.expr]] = {}

    def begins(self, number: int, span: Span) -> bool:
        """Tell whether programs come to all that makes an optimizer by calls in sight: until then there is none."""
        begin = {function for function, called in span.entries if not called}
        makers = self._makers(number)
        return bool(makers) and all(begin & self._program.above(maker) for maker in makers)

    def homes(self, number: int) -> frozenset[Function]:
        """Return the functions at whose end an optimizer is gone that was made in them, as nothing else has got it."""
        found = closure(self._makers(number), lambda f: self._takers(f, number))
        homes = [f for f in found if not self._hands_out(f, number)]
        if any(f.node is None or self._is_kept(f, number) for f in homes):
            return frozenset()
        return frozenset(homes)

    def _makers(self, number: int) -> list[Function]:
        return self._made_in.get(number, [])

    @cached_property
    def _made_in(self) -> dict[int, list[Function]]:
        """The functions in which each optimizer is made that a call makes for certain."""
        found: dict[int, list[Function]] = {}
        for function, held in self._program.training.by_function.items():
            for event in (event for events in held.values() for event in events):
                if event.kind is Kind.MAKE and event.optimizers and len(event.optimizers) == 1:
                    for number in event.optimizers:
                        found.setdefault(number, []).append(function)
        return found

    def _takers(self, function: Function, number: int) -> Iterator[Function]:
        """Yield the callers of a function that hands the optimizer out."""
        if self._hands_out(function, number):
            yield from (site.function for site in self._project.callers(function))

    def _hands_out(self, function: Function, number: int) -> bool:
        given = (node.value for node in function.own_nodes if isinstance(node, _GIVES))
        return any(value is not None and self._has(function, value, number) for value in given)

    def _is_kept(self, home: Function, number: int) -> bool:
        """Tell whether something that a function runs may keep the optimizer, or give it to code out of sight."""
        return any(
            any(_takes(event, number) for event in self._happening(function))
            or any(self._has(function, part, number) for part in self._keeping(function))
            for function in {home, *reachable(self._project, home)}
        )

    def _keeping(self, function: Function) -> list[ast.expr]:
        if function not in self._kept:
            self._kept[function] = list(_keeping(function))
        return self._kept[function]

    def _happening(self, function: Function) -> Iterator[Event]:
        for events in self._program.training.of(function).values():
            yield from events

    def _has(self, function: Function, node: ast.AST, number: int) -> bool:
        """Tell whether the optimizer may be in what an expression gives."""
        if number not in self._held:
            groups = self._program.training.objects.optimizers[number].groups
            self._held[number] = self._project.values.onward(groups, items=True)
        held = self._held[number]
        return any(held.reaches(function.module, part) for part in _given(node))


def _given(node: ast.AST) -> Iterator[ast.expr]:
    """Yield an expression and what it is made of; an attribute or item alone stands for itself."""
    queue = [node]
    for part in queue:
        if isinstance(part, ast.expr):
            yield part
        if not isinstance(part, ast.Attribute | ast.Subscript):
            queue += ast.iter_child_nodes(part)


def _takes(event: Event, number: int) -> bool:
    """Tell whether code out of sight may step the optimizer from now on."""
    return event.kind is Kind.HANDED and number in (event.optimizers or {number})


def _keeping(function: Function) -> Iterator[ast.expr]:
    """Yield what a function puts where it may outlive a call, and what functions inside of it read."""
    own = set(function.own_nodes)
    outer = {n for d in own if isinstance(d, ast.Global | ast.Nonlocal) for n in d.names}
    for node in function.all_nodes:
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield from _given(function.module.tree.statement(node))
        elif isinstance(node, ast.Attribute) and node.attr not in _DATA:
            if function.module.tree.call_of(node) is None:
                yield node.value  # whose method may be run later
        elif isinstance(node, ast.Call) and tail(node) in _PUTS:
            yield from all_given(node)
        elif isinstance(node, ast.Name) and (node not in own or node.id in outer):
            yield node
