"""Where the programs begin that an optimizer or a GradScaler belongs to, and which files they run."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from functools import cached_property

from amp_migrate.facts.closure import closure
from amp_migrate.modules.model import Module
from amp_migrate.project import Function
from amp_migrate.project.programs import beside, files_of
from amp_migrate.project.reach import reachable
from amp_migrate.project.relatives import runs
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.code.span import Entry, Span
from amp_migrate.training.contexts import is_off
from amp_migrate.training.events import Event, Kind


class Programs:
    """The entries of a project, by what happens behind them: programs beside each other are no matter of each other."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._without: dict[Function, bool] = {}

    def of_optimizers(self, numbers: Collection[int]) -> Span:
        """Return the entries behind which one of some optimizers steps, or an event names it, or all of them.

        A program that does not step an optimizer steps another one with the gradients of its networks.
        """
        named, objects = self._homes[0], self._program.training.objects
        above = self._above_all(self._steps.get(n, named.get(n, set())) for n in numbers)
        made = [objects.made_in(number) for number in numbers]
        return self._span(above, set().union(*made) if all(made) else set())

    def whole(self, number: int) -> tuple[Entry, ...]:
        """Return the functions called by code out of reach that run a backward, and all steps of an optimizer behind it."""
        steps = self._steps.get(number, set())
        called = [e for e in self._program.entries if e[1] and e[0].node is not None]
        return tuple(
            entry
            for entry in called
            if steps
            and steps <= (ran := self._below(entry[0]))
            and any(e.kind is Kind.BACKWARD for f in ran for e in self._events(f))
        )

    def unscaling(self, number: int, function: Function) -> list[ast.Call]:
        """Return the calls of `unscale_` for an optimizer that a function runs."""
        return [
            event.node
            for ran in self._below(function)
            for event in self._events(ran)
            if event.kind is Kind.UNSCALE and number in (event.optimizers or {number})
            if isinstance(event.node, ast.Call)
        ]

    def _below(self, function: Function) -> set[Function]:
        return {function, *reachable(self._program.project, function)}

    def _events(self, function: Function) -> Iterable[Event]:
        held = self._program.training.by_function.get(function, {})
        return (event for some in held.values() for event in some)

    def of_scaler(self, number: int) -> Span:
        """Return the entries behind which an event is of a GradScaler, all of them if there is none."""
        return Span(self._above_all([self._homes[1].get(number, ())]))

    def _span(self, entries: tuple[Entry, ...], makers: Collection[Module]) -> Span:
        """Return those of some entries whose programs may run what makes an object, all if none is seen to."""
        files = beside(self._program.project, *(module.path for module in makers))
        near = tuple(entry for entry in entries if entry[0].module.path in files)
        return Span(near, files) if near else Span(entries)

    @cached_property
    def parted(self) -> frozenset[int]:
        """The numbers of the GradScalers that are on in some programs and off in others, but never made both in one."""
        objects = self._program.training.objects
        on: dict[int, set[Function]] = {}
        off: dict[int, set[Function]] = {}
        for module, call in objects.made_scalers:
            number = objects.scaler(module, call)
            if number is not None:
                made = self._program.project.function_of(module, call)
                (off if is_off(call) else on).setdefault(number, set()).update(self._running(made))
        return frozenset(n for n in on.keys() & off.keys() if not on[n] & off[n])

    def on(self, span: Span) -> Span:
        """Return a span without the programs that make no GradScaler that is on, though they share files with ones that do."""
        on = tuple(entry for entry in span.entries if entry[1] or not self._never_on(entry[0]))
        return span._replace(entries=on)

    def _never_on(self, begin: Function) -> bool:
        """Tell whether nothing that a program runs makes a GradScaler that is on, nor a method of any object that it makes."""
        if begin not in self._without:
            ran, project = self._below(begin), self._program.project
            made = {cls for f in ran for call in f.calls for cls in project.constructed(call)}
            self._without[begin] = bool(self._makers) and all(
                maker not in ran
                and maker.class_around is not None
                and not any(runs(cls, maker.method) for cls in made)
                for maker in self._makers
            )
        return self._without[begin]

    @cached_property
    def _makers(self) -> set[Function]:
        """The functions that make GradScalers which are on."""
        made = self._program.training.objects.made_scalers
        return {self._program.project.function_of(m, c) for m, c in made if not is_off(c)}

    def _running(self, function: Function) -> set[Function]:
        """Return the entries that may run a function; what stands in no function runs where its file is imported."""
        above = set(self._entries_above({function}))
        if function is function.module.top:
            path, project = function.module.path, self._program.project
            above |= {entry for entry in self._begin if path in files_of(project, entry.module)}
        return above

    def _above_all(self, homes: Iterable[Iterable[Function]]) -> tuple[Entry, ...]:
        above = self._entries_above({home for some in homes for home in some})
        return tuple(e for e in self._program.entries if e[0] in above) or self._program.entries

    @cached_property
    def _steps(self) -> dict[int, set[Function]]:
        """The functions in which an optimizer steps, by its number."""
        found: dict[int, set[Function]] = {}
        for function, by_node in self._program.training.by_function.items():
            for event in (event for held in by_node.values() for event in held):
                for number in (event.optimizers or ()) if event.kind is Kind.STEP else ():
                    found.setdefault(number, set()).add(function)
        return found

    @cached_property
    def _homes(self) -> tuple[dict[int, set[Function]], dict[int, set[Function]]]:
        """The functions whose events name an optimizer, and those whose events are of a GradScaler, by number."""
        optimizers: dict[int, set[Function]] = {}
        scalers: dict[int, set[Function]] = {}
        for function, by_node in self._program.training.by_function.items():
            for event in (event for held in by_node.values() for event in held):
                for number in event.optimizers or ():
                    optimizers.setdefault(number, set()).add(function)
                if event.scaler is not None:
                    scalers.setdefault(event.scaler, set()).add(function)
        return optimizers, scalers

    @cached_property
    def _begin(self) -> frozenset[Function]:
        return frozenset(function for function, _ in self._program.entries)

    def _entries_above(self, homes: set[Function]) -> frozenset[Function]:
        """Return the entries from which one of some functions may be reached."""
        holders, relevant = self._program.calls.holders, self._program.relevant
        found = closure(homes, lambda at: (f for f in holders(at) if f in relevant))
        return self._begin.intersection(found)
