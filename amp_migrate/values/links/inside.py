"""What an object holds: the objects in its attributes and items, some levels down."""

from __future__ import annotations

from amp_migrate.values.nodes import Nodes
from amp_migrate.values.objects import Instance

_DEEP = 3
_MANY = 400


class Inside:
    """Finds what objects hold; what the fields of one are is kept until the graph changes."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._version = -1
        self._known: dict[int, set[int]] = {}

    def of(self, node: int) -> set[int]:
        """Return the representatives of the objects that the object at `node` may hold."""
        graph = self._nodes.graph
        found: set[int] = set()
        level = {graph.find(node)}
        for _ in range(_DEEP):
            held = {graph.find(one) for at in level for one in self._fields(at)} - found
            found |= held
            level = held
            if len(found) > _MANY:
                break
        return found

    def _fields(self, node: int) -> set[int]:
        graph = self._nodes.graph
        if self._version != graph.version:
            self._version = graph.version
            self._known.clear()
        known = self._known.get(node)
        if known is None:
            known = self._found(node)
            if self._version == graph.version:  # looking may have created attributes
                self._known[node] = known
        return known

    def _found(self, node: int) -> set[int]:
        nodes, graph = self._nodes, self._nodes.graph
        found: set[int] = set()
        for one in set().union(*graph.reach(node)):
            root = graph.find(one)
            found.update(graph.fields[root].values())
            for fact in list(graph.stated[root]):
                if isinstance(fact, Instance):
                    names = {n for cls in fact.cls.mro() for n in nodes.mentions.get(cls, ())}
                    found.update(nodes.attribute(fact.cls, name) for name in names)
        return {other for at in found for other in graph.reach(at)[0]}
