"""Where the objects of some nodes can flow to: a quick answer that is never wrongly no."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from amp_migrate.project.model import Module
from amp_migrate.values.graph import Graph


@dataclass(frozen=True, slots=True)
class Onward:
    """The nodes that some objects can flow to; those made since then count as reached."""

    found: set[int]
    size: int
    version: int
    node: Callable[[Module, ast.expr], int | None]

    def reaches(self, module: Module, expression: ast.expr) -> bool:
        """Tell whether the objects can flow to an expression."""
        node = self.node(module, expression)
        return node is not None and (node >= self.size or node in self.found)


def onward(
    graph: Graph, starts: Iterable[int], node: Callable[[Module, ast.expr], int | None]
) -> Onward:
    """Return at least the nodes that the objects of some nodes may flow to.

    A field counts wherever a field of that name may hold one: cheap, and never too few.
    """
    targets: dict[int, list[int]] = {}
    fields: dict[str, list[int]] = {}
    for root in graph.representatives():
        for source in graph.feeding(root):
            targets.setdefault(source, []).append(root)
        for name in graph.field_names(root):
            fields.setdefault(_kind(name), []).append(root)
    found = {graph.find(start) for start in starts}
    queue = list(found)
    said: set[str] = set()
    for root in queue:
        names = {_kind(name) for name in graph.field_names(root)} - said
        said |= names
        reached = [*targets.get(root, ()), *(n for name in names for n in fields[name])]
        queue += [n for n in dict.fromkeys(reached) if n not in found]
        found |= set(reached)
    whole = {at for at in range(graph.size) if graph.find(at) in found}
    return Onward(whole, graph.size, graph.version, node)


def _kind(name: str) -> str:
    """Return a field name; all items of containers count as one."""
    return "[" if name.startswith("[") else name
