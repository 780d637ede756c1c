"""What the way back from a node is made of: what is straight before it, and the fields that are looked for on the way."""

from __future__ import annotations

Nodes = tuple[int, ...]
Holders = tuple[tuple[int, str], ...]


class Near:
    """What is straight before a representative: what flows in or makes it, whose field it is, and what its fields are."""

    __slots__ = ("holders", "inner", "items", "makers", "named", "sources", "steps")

    def __init__(self, sources: Nodes, makers: Nodes, holders: Holders, items: Nodes) -> None:
        self.sources = sources
        self.makers = makers
        self.holders = holders
        self.items = items
        self.inner: dict[str, Nodes] = {}
        self.named = {*sources, *makers, *items, *(holder for holder, _ in holders)}
        self.steps: dict[int, Nodes] = {}


class Pending:
    """The fields that are looked for inside a node, innermost last, as numbers: 0 for none."""

    def __init__(self) -> None:
        self.split: list[tuple[str, int]] = [("", 0)]
        self.depth = [0]
        self._numbers: dict[tuple[str, int], int] = {}

    def within(self, name: str, rest: int) -> int:
        """Return the number of a field and those that are looked for in it."""
        number = self._numbers.get((name, rest))
        if number is None:
            number = self._numbers[name, rest] = len(self.split)
            self.split.append((name, rest))
            self.depth.append(self.depth[rest] + 1)
        return number
