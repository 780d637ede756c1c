"""An optimizer and a GradScaler, each with the names that hold it."""

from __future__ import annotations

import ast
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


def sets_scale(call: ast.Call) -> ast.expr | None:
    """Return the loss scale that a method of a GradScaler sets: ``update(scale)``, or ``load_state_dict({..., "scale": scale})``."""
    func = call.func
    given = [*call.args[:1], *(k.value for k in call.keywords)]
    if not isinstance(func, ast.Attribute) or not given:
        return None
    if func.attr == "update":
        return given[0]
    state = given[0] if func.attr == "load_state_dict" else None
    if not isinstance(state, ast.Dict):
        return None
    entries = zip(state.keys, state.values, strict=True)
    return next((v for k, v in entries if isinstance(k, ast.Constant) and k.value == "scale"), None)
