"""Where the objects of some nodes can flow to: a quick answer that is never wrongly no."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from amp_migrate.facts.closure import spread
from amp_migrate.modules.model import Module
from amp_migrate.values.links.graph import Graph
from amp_migrate.values.objects import Fact

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Onward:
    """The nodes that some objects can flow to; those made since then count as reached."""

    found: set[int]
    size: int
    node: Callable[[Module, ast.expr], int | None]

    def reaches(self, module: Module, expression: ast.expr) -> bool:
        """Tell whether the objects can flow to an expression."""
        node = self.node(module, expression)
        return node is not None and (node >= self.size or node in self.found)


class Ways:
    """Where objects flow in a graph: from node to nodes, the nodes with a field, and the fields of a node.

    It grows with the graph. What stood for itself once may have been merged into another node since.
    """

    def __init__(self, graph: Graph) -> None:
        self.targets: dict[int, list[int]] = {}
        self.fields: dict[str, list[int]] = {}
        self.kinds: dict[int, set[str]] = {}
        for root in graph.representatives():
            for source in graph.feeding(root):
                self.linked(source, root)
            for name in graph.field_names(root):
                self.named(root, name)

    def linked(self, source: int, target: int) -> None:
        """Note that what is at a node flows into another one."""
        self.targets.setdefault(source, []).append(target)

    def named(self, node: int, name: str) -> None:
        """Note that a node is a field of a name."""
        kind, own = _kind(name), self.kinds.setdefault(node, set())
        if kind not in own:
            own.add(kind)
            self.fields.setdefault(kind, []).append(node)

    def merged(self, root: int, gone: int) -> None:
        """Note that a node went into another one."""
        if gone in self.targets:
            self.targets.setdefault(root, []).extend(self.targets.pop(gone))
        if gone in self.kinds:
            self.kinds.setdefault(root, set()).update(self.kinds.pop(gone))

    def stated(self, node: int, fact: Fact) -> None:
        """Note what the object at a node is, of which nothing hangs here."""


class Spread:
    """The nodes that some objects can flow to, as the graph grows: those of `starts`, and of which a wanted fact is known.

    What `around` gives for a node counts as well. It is told what happens before its ways are.
    """

    def __init__(
        self,
        graph: Graph,
        ways: Ways,
        wanted: Callable[[Fact], bool],
        starts: Iterable[int] = (),
        around: Callable[[int], Iterable[int]] = lambda _: (),
    ) -> None:
        self._graph = graph
        self._ways = ways
        self._wanted = wanted
        self._around = around
        self._found: set[int] = set()
        self._said: set[str] = set()
        self._reach({*graph.holding(wanted), *map(graph.find, starts)})

    def reaches(self, node: int) -> bool:
        """Tell whether one of the objects can flow to a node."""
        return self._graph.find(node) in self._found

    def linked(self, source: int, target: int) -> None:
        """Go on where the objects flow into another node."""
        if source in self._found:
            self._reach([target])

    def named(self, node: int, name: str) -> None:
        """Go on where a node became a field that may hold one of the objects, or holds one."""
        kind = _kind(name)
        if kind in self._said:
            self._reach([node])
        elif node in self._found:
            self._said.add(kind)
            self._reach(map(self._graph.find, self._ways.fields.get(kind, ())))

    def merged(self, root: int, gone: int) -> None:
        """Go on where a node that the objects reach and another one became one."""
        if root in self._found or gone in self._found:
            self._reach([root, gone])

    def stated(self, node: int, fact: Fact) -> None:
        """Go on from a node of which a wanted fact became known."""
        if self._wanted(fact):
            self._reach([node])

    def _reach(self, starts: Iterable[int]) -> None:
        """Note the nodes that are reached from some, those included."""
        found = self._found
        for node in spread((start for start in starts if start not in found), self._onward):
            found.add(node)

    def _onward(self, node: int) -> Iterator[int]:
        """Yield where the objects at a node flow that is not reached yet."""
        names = self._ways.kinds.get(node, _NONE) - self._said
        self._said |= names
        fields = (at for name in names for at in self._ways.fields[name])
        targets = self._ways.targets.get(node, ())
        around = self._around(self._graph.find(node))
        for at in map(self._graph.find, chain(targets, fields, around)):
            if at not in self._found:
                yield at


def onward(
    graph: Graph,
    starts: Iterable[int],
    node: Callable[[Module, ast.expr], int | None],
    known: Ways | None = None,
    *,
    items: bool = False,
) -> Onward:
    """Return at least the nodes that the objects of some nodes may flow to.

    A field counts wherever a field of that name may hold one: cheap, and never too few. `known` gives the ways of the
    graph, where they are kept. With `items`, what reaches an item of a container reaches that.
    """
    found = {graph.find(start) for start in starts}
    if not found:
        return Onward(found, graph.size, node)
    ways, find = known or Ways(graph), graph.find
    queue = list(found)
    said: set[str] = set()
    for root in queue:
        names = ways.kinds.get(root, _NONE) - said
        said |= names
        fields = (at for name in names for at in ways.fields[name])
        reached = [find(at) for at in chain(ways.targets.get(root, ()), fields)]
        reached += graph.containers(root) if items else []
        queue += [n for n in dict.fromkeys(reached) if n not in found]
        found |= set(reached)
    whole = {at for at in range(graph.size) if find(at) in found}
    return Onward(whole, graph.size, node)


def _kind(name: str) -> str:
    """Return a field name; all items of containers count as one."""
    return "[" if name.startswith("[") else name
