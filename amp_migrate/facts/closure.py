"""Everything that a relation leads to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

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
