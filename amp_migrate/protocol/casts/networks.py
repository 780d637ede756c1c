"""Which networks are told apart in autocast blocks: each, those that something is asked of, or none."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from amp_migrate.protocol.calls.networks import RUNS
from amp_migrate.protocol.calls.receivers import Object
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.named import Groups

_ANY = -1


class Cached(NamedTuple):
    """A network that ran without gradients, or some `part` of it, and the object of which it is a part that no other object has.

    Of one that a method of its own ran so `left` are the parts.
    """

    network: int
    around: Object | None = None
    part: bool = False
    left: Groups = frozenset()


class Bodies:
    """What is known of the nodes that run networks; here that is nothing."""

    def already(self, node: ast.AST) -> bool:
        """Tell of a node that what runs there has cast its weights with gradients before."""
        return False

    def left(self, node: ast.AST) -> Groups:
        """Return the parts of its network that a call runs without gradients alone, by a method that takes them itself."""
        return frozenset()

    def trains(self, node: ast.AST, parts: Groups) -> bool:
        """Tell whether a call may run some parts of its network with gradients."""
        return True


class Networks:
    """Tells each network apart; `bodies` tell what is known of the nodes that run them."""

    def __init__(self, bodies: Bodies | None = None) -> None:
        self.bodies = bodies or Bodies()

    def left(self, event: Event, around: Object | None) -> frozenset[Cached]:
        """Return what is cached where a method of a network runs parts of it without gradients."""
        parts = self.bodies.left(event.node)
        if not parts:
            return frozenset()
        whole = replace(event, networks=event.networks | event.within, within=frozenset())
        return frozenset(one._replace(left=parts) for one in self.cached(whole, around))

    def again(self, event: Event, old: Cached) -> bool:
        """Tell whether an event may run with gradients what is cached without."""
        if old.left and not self.bodies.trains(event.node, old.left):
            return False
        return self.runs(event, old)

    def cached(self, event: Event, around: Object | None) -> frozenset[Cached]:
        """Return what is cached where networks run without gradients."""
        whole = (Cached(network, around) for network in event.networks)
        return frozenset((*whole, *(Cached(n, around, part=True) for n in event.within)))

    def runs(self, event: Event, old: Cached) -> bool:
        """Tell whether what is cached may run again."""
        return old.network in event.networks or (old.network in event.within and not old.part)

    def ran(self, event: Event) -> frozenset[int]:
        """Return what runs of networks whose weights something writes by hand, with the complements of those it is a part of."""
        return event.networks | {~number for number in event.within}

    def writes(self, event: Event, ran: frozenset[int]) -> bool:
        """Tell whether weights are written with which something ran."""
        parts = {~number for number in event.networks}
        return not ran.isdisjoint(event.networks | event.within | parts)


EACH = Networks()


class AnyNetwork(Networks):
    """Takes every network for every other one: whatever may happen to one happens to it, in very few states."""

    def cached(self, event: Event, around: Object | None) -> frozenset[Cached]:
        """Return that something is cached."""
        return frozenset({Cached(_ANY)} if event.networks or event.within else ())

    def runs(self, event: Event, old: Cached) -> bool:
        """Tell whether any network may run."""
        return bool(event.networks or event.within)

    def ran(self, event: Event) -> frozenset[int]:
        """Return that something ran."""
        return frozenset({_ANY})

    def writes(self, event: Event, ran: frozenset[int]) -> bool:
        """Tell whether something ran."""
        return bool(ran)


class Asked(Networks):
    """Tells networks apart by which of some events may run them again or write their weights; others are not followed."""

    def __init__(self, events: Iterable[Event], bodies: Bodies) -> None:
        super().__init__(bodies)
        asked = [e for e in events if e.kind in (*RUNS, Kind.WEIGHT_WRITE)]
        self._numbers = {
            key: number for number, key in enumerate(dict.fromkeys(map(_networks, asked)))
        }
        self._asked = {self._numbers[_networks(event)]: event for event in asked}
        self._known: dict[tuple[frozenset[int], frozenset[int]], frozenset[int]] = {}

    def cached(self, event: Event, around: Object | None) -> frozenset[Cached]:
        """Return by which events what runs without gradients may run again."""
        found = self._by(*_networks(event))
        return frozenset(Cached(number, around) for number in found)

    def runs(self, event: Event, old: Cached) -> bool:
        """Tell whether an event is one by which what is cached may run again."""
        return self._numbers.get(_networks(event)) == old.network

    def ran(self, event: Event) -> frozenset[int]:
        """Return which events write what runs."""
        return self._by(*_networks(event))

    def writes(self, event: Event, ran: frozenset[int]) -> bool:
        """Tell whether an event is one that writes what ran."""
        return self._numbers.get(_networks(event)) in ran

    def _by(self, whole: frozenset[int], parts: frozenset[int]) -> frozenset[int]:
        """Return the events that concern some networks, or parts of them."""
        if (whole, parts) not in self._known:
            self._known[whole, parts] = frozenset(
                number
                for number, event in self._asked.items()
                if not whole.isdisjoint(event.networks | event.within)
                or not parts.isdisjoint(event.networks)
            )
        return self._known[whole, parts]


def _networks(event: Event) -> tuple[frozenset[int], frozenset[int]]:
    return event.networks, event.within
