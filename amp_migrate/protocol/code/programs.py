"""Where the programs begin that an optimizer or a GradScaler belongs to."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.events import Event

Entry = tuple[Function, bool]


class Programs:
    """The entries of a project, by what happens behind them: programs beside each other are no matter of each other."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._above: dict[Function, frozenset[Function]] = {}

    def of_optimizer(self, number: int) -> tuple[Entry, ...]:
        """Return the entries behind which an event names an optimizer, all of them if there is none."""
        return self._naming(lambda e: e.optimizers is not None and number in e.optimizers)

    def of_optimizers(self, numbers: frozenset[int]) -> tuple[Entry, ...]:
        """Return the entries behind which an event names one of several optimizers."""
        return self._naming(lambda e: e.optimizers is not None and bool(numbers & e.optimizers))

    def of_scaler(self, number: int) -> tuple[Entry, ...]:
        """Return the entries behind which an event is of a GradScaler, all of them if there is none."""
        return self._naming(lambda e: e.scaler == number)

    def _naming(self, names: Callable[[Event], bool]) -> tuple[Entry, ...]:
        homes = [function for function, events in self._events.items() if any(map(names, events))]
        above = {entry for function in homes for entry in self._entries_above(function)}
        return tuple(e for e in self._program.entries if e[0] in above) or self._program.entries

    @cached_property
    def _events(self) -> dict[Function, list[Event]]:
        return {
            function: [event for held in by_node.values() for event in held]
            for function, by_node in self._program.training.by_function.items()
        }

    @cached_property
    def _begin(self) -> frozenset[Function]:
        return frozenset(function for function, _ in self._program.entries)

    def _entries_above(self, function: Function) -> frozenset[Function]:
        """Return the entries from which a function may be reached."""
        if function not in self._above:
            seen = {function}
            queue = [function]
            for at in queue:
                for holder in self._program.calls.holders(at):
                    if holder in self._program.relevant and holder not in seen:
                        seen.add(holder)
                        queue.append(holder)
            self._above[function] = frozenset(seen & self._begin)
        return self._above[function]
