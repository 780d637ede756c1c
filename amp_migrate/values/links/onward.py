"""Where the objects of some nodes can flow to: a quick answer that is never wrongly no."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from amp_migrate.modules.model import Module
from amp_migrate.values.links.graph import Graph

_NONE: frozenset[str] = frozenset()


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


class Ways(NamedTuple):
    """Where objects flow in a graph as it is: from node to nodes, the nodes with a field, and the fields of a node."""

    targets: dict[int, list[int]]
    fields: dict[str, list[int]]
    kinds: dict[int, set[str]]


def ways(graph: Graph) -> Ways:
    """Return where objects flow; it holds until the version of the graph is another one."""
    found = Ways({}, {}, {})
    for root in graph.representatives():
        for source in graph.feeding(root):
            found.targets.setdefault(source, []).append(root)
        names = graph.field_names(root)
        for name in names:
            found.fields.setdefault(_kind(name), []).append(root)
        if names:
            found.kinds[root] = {_kind(name) for name in names}
    return found


def onward(
    graph: Graph,
    starts: Iterable[int],
    node: Callable[[Module, ast.expr], int | None],
    known: Callable[[], Ways] | None = None,
    *,
    items: bool = False,
) -> Onward:
    """Return at least the nodes that the objects of some nodes may flow to.

    A field counts wherever a field of that name may hold one: cheap, and never too few. `known` gives the ways of the
    graph, where they are kept. With `items`, what reaches an item of a container reaches that.
    """
    found = {graph.find(start) for start in starts}
    if not found:
        return Onward(found, graph.size, graph.version, node)
    targets, fields, kinds = known() if known is not None else ways(graph)
    queue = list(found)
    said: set[str] = set()
    for root in queue:
        names = kinds.get(root, _NONE) - said
        said |= names
        reached = [*targets.get(root, ()), *(n for name in names for n in fields[name])]
        reached += graph.containers(root) if items else []
        queue += [n for n in dict.fromkeys(reached) if n not in found]
        found |= set(reached)
    whole = {at for at in range(graph.size) if graph.find(at) in found}
    return Onward(whole, graph.size, graph.version, node)


def _kind(name: str) -> str:
    """Return a field name; all items of containers count as one."""
    return "[" if name.startswith("[") else name
