"""An optimizer and a GradScaler, each with the names that hold it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

Groups = frozenset[int]


@dataclass(eq=False)
class Optimizer:
    """An optimizer that a GradScaler steps or unscales.

    `groups` are the names that hold it; `networks` those of the modules whose parameters it was made with,
    None where that is not known; `within` are the modules that those are parts of, and `inside` the one name of
    each of either. `text` is how the program calls it.
    """

    number: int
    groups: set[int]
    text: str
    networks: set[int] | None = None
    within: set[int] = field(default_factory=set)
    inside: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Scaler:
    """A GradScaler, and the numbers of its optimizers."""

    number: int
    groups: set[int]
    text: str
    optimizers: set[int] = field(default_factory=set)


def merged(held: Iterable[tuple[str, Groups]]) -> list[tuple[str, set[int]]]:
    """Put together what shares a name: pairs of a text and of names."""
    found: list[tuple[str, set[int]]] = []
    for text, groups in held:
        if not groups:
            continue
        same = [entry for entry in found if entry[1] & groups]
        texts = [entry[0] for entry in same if entry[0]] + ([text] if text else [])
        every = set(groups).union(*(entry[1] for entry in same))
        found = [entry for entry in found if entry not in same]
        found.append((texts[0] if texts else "", every))
    return found
