"""Everything that a relation leads to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


def closure(starts: Iterable[Item], onward: Callable[[Item], Iterable[Item]]) -> list[Item]:
    """Return what some items lead to, directly or not, each once and the items themselves first."""
    return list(spread(starts, onward))


def spread(starts: Iterable[Item], onward: Callable[[Item], Iterable[Item]]) -> Iterator[Item]:
    """Yield the same one by one: what an item leads to is asked once the next one is."""
    queue = list(dict.fromkeys(starts))
    found = set(queue)
    for item in queue:
        yield item
        for other in onward(item):
            if other not in found:
                found.add(other)
                queue.append(other)


class Gathered(Generic[Item]):
    """The bits of all that an item leads to, itself included, worked out once for every item on the way.

    `onward` and `own` give what an item leads to straight away, and its own bits; they never change.
    """

    def __init__(
        self, onward: Callable[[Item], Iterable[Item]], own: Callable[[Item], int]
    ) -> None:
        self._onward = onward
        self._own = own
        self._known: dict[Item, int] = {}

    def of(self, start: Item) -> int:
        """Return the bits of all that an item leads to."""
        if start not in self._known:
            self._explore(start)
        return self._known[start]

    def _explore(self, start: Item) -> None:
        """Work out the bits of items, those that lead to each other together (Tarjan)."""
        known = self._known
        order, lowest, bits = {start: 0}, {start: 0}, {start: self._own(start)}
        still = [start]
        way = [(start, iter(self._onward(start)))]
        while way:
            item, rest = way[-1]
            for other in rest:
                if other in known:
                    bits[item] |= known[other]
                elif other in order:
                    lowest[item] = min(lowest[item], order[other])
                else:
                    order[other] = lowest[other] = len(order)
                    bits[other] = self._own(other)
                    still.append(other)
                    way.append((other, iter(self._onward(other))))
                    break
            else:
                way.pop()
                if lowest[item] == order[item]:
                    self._close(item, still, bits)
                if way:
                    before = way[-1][0]
                    lowest[before] = min(lowest[before], lowest[item])
                    bits[before] |= bits[item]

    def _close(self, first: Item, still: list[Item], bits: dict[Item, int]) -> None:
        """Note the bits of items that lead to each other: those from `first` on, which are taken off `still`."""
        members = [still.pop()]
        while members[-1] != first:
            members.append(still.pop())
        for member in members:
            bits[first] |= bits[member]
        self._known |= dict.fromkeys(members, bits[first])
