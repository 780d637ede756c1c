"""What happens at the nodes of a project, by function: worked out for one function, or for all, when first asked for."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

from amp_migrate.project import Function, Module, Project
from amp_migrate.training.events import Event, trains
from amp_migrate.training.gradients.kept import KEEPING, moment
from amp_migrate.training.origins.reaching import Body
from amp_migrate.training.reads.writes import Writing

Held = Mapping[ast.AST, tuple[Event, ...]]
"""The events at the nodes of a function."""
Same = TypeVar("Same", bound="Happening")
_NOTHING: Held = MappingProxyType({})


class Happening(ABC):
    """Keeps the events of a project, which `_events` tells node by node."""

    def __init__(self, project: Project, body: Body) -> None:
        """Read a project; `body` tells in which function or lambda a node is evaluated."""
        self.project = project
        self._body = body
        self._known: dict[ast.AST, tuple[Event, ...]] = {}
        self._nodes: dict[Module, Mapping[Function, Sequence[Writing]]] = {}
        self._happening: dict[Function, Held] = {}

    @abstractmethod
    def _events(self, function: Function, node: Writing) -> Iterator[Event]:
        """Yield what happens at a node of a function."""

    @cached_property
    def by_function(self) -> Mapping[Function, Held]:
        """The functions in which something happens, and the events at their nodes."""
        found: dict[Function, dict[ast.AST, tuple[Event, ...]]] = {}
        for module in self.project.modules.values():
            for function, node in self._asked(module):
                self._add(found, function, node)
        return {function: held for function, held in found.items() if trains(held)}

    def inside(self, module: Module) -> Iterator[tuple[Function, Held]]:
        """Yield the functions of a file in which something happens, without asking about other files."""
        for function in self._within(module):
            if held := self.of(function):
                yield function, held

    def of(self, function: Function) -> Held:
        """Return the events at the nodes of a function, without asking what happens in others."""
        if "by_function" in vars(self):
            return self.by_function.get(function, _NOTHING)
        if function not in self._happening:
            found: dict[Function, dict[ast.AST, tuple[Event, ...]]] = {function: {}}
            for node in self._within(function.module).get(function, ()):
                self._add(found, function, node)
            self._happening[function] = found[function] if trains(found[function]) else _NOTHING
        return self._happening[function]

    def _add(
        self,
        found: dict[Function, dict[ast.AST, tuple[Event, ...]]],
        function: Function,
        node: Writing,
    ) -> None:
        """Add the events at a node of a function, which are found once."""
        if node not in self._known:
            self._known[node] = tuple(self._events(function, node))
        for event in self._known[node]:
            held = found.setdefault(function, {})
            keeps = event.kind in KEEPING.values()
            at = moment(function.module.tree, node) if keeps else node
            held[at] = (*held.get(at, ()), event)

    def _asked(self, module: Module) -> list[tuple[Function, Writing]]:
        """Return the nodes of a file at which something may happen, each with its function."""
        grads = [n for n in module.tree.nodes(ast.Attribute) if n.attr in ("grad", "data")]
        nodes: list[Writing] = [*module.tree.nodes(ast.Call), *grads]
        nodes += module.tree.nodes(ast.AugAssign)
        return [(self._body(module, node), node) for node in nodes]

    def _within(self, module: Module) -> Mapping[Function, Sequence[Writing]]:
        if module not in self._nodes:
            held: dict[Function, list[Writing]] = {}
            for function, node in self._asked(module):
                held.setdefault(function, []).append(node)
            self._nodes[module] = held
        return self._nodes[module]

    def only(self: Same, wanted: Callable[[Function, Event], bool]) -> Same:
        """Return the same training with some of its events alone."""
        found: dict[Function, dict[ast.AST, tuple[Event, ...]]] = {}
        for function, held in self.by_function.items():
            for node, events in held.items():
                kept = tuple(event for event in events if wanted(function, event))
                if kept:
                    found.setdefault(function, {})[node] = kept
        return self.instead(found)

    def instead(self: Same, happening: Mapping[Function, Held]) -> Same:
        """Return the same training with other events."""
        part = copy(self)
        vars(part)["by_function"] = happening
        return part
