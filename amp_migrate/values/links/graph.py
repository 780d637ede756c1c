"""Nodes that stand for objects: merged where they are the same, linked where one may flow into another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from amp_migrate.modules.model import Class
from amp_migrate.values.links.upstream import EACH, Upstream
from amp_migrate.values.objects import Fact, Instance

VALUES = "values()"

# How many steps the flow of one object is followed, nearest first.
FAR = 2000
MIDDLE = 300
_NEAR = 100


class Watching(Protocol):
    """What is told of all that happens in a graph, once it has."""

    def linked(self, source: int, target: int) -> None:
        """What is at a representative flows into another one, or is made like it."""

    def named(self, node: int, name: str) -> None:
        """A representative is a field of a name."""

    def merged(self, root: int, gone: int) -> None:
        """A representative went into another one."""

    def stated(self, node: int, fact: Fact) -> None:
        """A fact is known of a representative."""


class Graph:
    """Union-find over nodes with fields, and directed flow between classes of merged nodes.

    A field is an attribute name or ``[key]``. Merging two nodes merges their fields. What flows from a
    node into another is seen there, but does not make two sources of one node the same.
    """

    def __init__(self, attribute: Callable[[Class, str], int]) -> None:
        """Start empty; `attribute` gives the node of an attribute of a class's instances."""
        self.version = 0
        self.watched: list[Watching] = []
        self.attribute = attribute
        self.up: list[int] = []
        self.fields: list[dict[str, int]] = []
        self.sources: list[dict[int, None]] = []
        self.makers: list[dict[int, None]] = []
        self.owners: list[dict[tuple[int, str], None]] = []
        self.stated: list[dict[Fact, None]] = []
        self._lasts: list[bool] = []
        self._todo: list[tuple[int, int]] = []
        self._busy = False
        self._upstream = Upstream(self)

    def new(self) -> int:
        """Return a fresh node."""
        self.up.append(len(self.up))
        self.fields.append({})
        self.sources.append({})
        self.makers.append({})
        self.owners.append({})
        self.stated.append({})
        self._lasts.append(False)
        return len(self.up) - 1

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self.up)

    def find(self, node: int) -> int:
        """Return the representative of the nodes merged with `node`."""
        up = self.up
        while up[node] != node:
            up[node] = up[up[node]]
            node = up[node]
        return node

    def merge(self, a: int, b: int) -> None:
        """Make two nodes the same object, and their fields."""
        self._todo.append((a, b))
        if self._busy:
            return
        self._busy = True
        while self._todo:
            self._merge(*self._todo.pop())
        self._busy = False

    def flow(self, source: int, target: int) -> None:
        """Let the object at `source` be one of those at `target`."""
        self._link(self.sources, source, target)

    def make(self, source: int, target: int) -> None:
        """Let `target` be a new object each time, of the kind that `source` stands for."""
        self._link(self.makers, source, target)

    def state(self, node: int, fact: Fact) -> None:
        """Note what the object at `node` is."""
        root = self.find(node)
        if fact in self.stated[root]:
            return
        self._change(root)
        self.stated[root][fact] = None
        for watching in self.watched:
            watching.stated(root, fact)
        if isinstance(fact, Instance):
            for name, inner in list(self.fields[root].items()):
                self.merge(inner, self.attribute(fact.cls, name))

    def field(self, node: int, name: str) -> int:
        """Return the node of an attribute or item of `node`."""
        root = self.find(node)
        known = self.fields[root].get(name)
        if known is not None:
            return known
        made = self._add_field(root, name)
        for fact in list(self.stated[root]):
            if isinstance(fact, Instance):
                self.merge(made, self.attribute(fact.cls, name))
        return made

    def plain_field(self, node: int, name: str) -> int:
        """Return the node of an attribute, without asking what classes the object has."""
        root = self.find(node)
        known = self.fields[root].get(name)
        return known if known is not None else self._add_field(root, name)

    def items(self, node: int) -> list[str]:
        """Return the field names of the items that were put into a node, one by one or appended."""
        names = self.fields[self.find(node)]
        return [name for name in names if name.startswith("[") and name != EACH]

    def keep(self, node: int) -> None:
        """Note that the object at `node` outlives the function that makes it."""
        self._lasts[self.find(node)] = True

    def near(self, node: int) -> set[int]:
        """Return the representatives of the objects that `node` may be, from close by."""
        same, _ = self._upstream.follow(self.find(node), items=False, far=_NEAR)
        return {self.find(root) for root in same}

    def is_fed(self, node: int) -> bool:
        """Tell whether other objects may be at a node."""
        return bool(self.sources[self.find(node)])

    def lasts(self, root: int) -> bool:
        """Tell whether the object of a representative was kept."""
        return self._lasts[root]

    def own_facts(self, node: int) -> list[Fact]:
        """Return what is known of the object itself, without what flows in."""
        return list(self.stated[self.find(node)])

    def facts(self, node: int, far: int = FAR) -> list[Fact]:
        """Return what is known of every object that `node` may be, as far as `far` steps show."""
        root = self.find(node)
        if self.stated[root] and not self.sources[root] and not self.makers[root]:
            return list(self.stated[root])
        return self._upstream.facts(root, far)

    def reach(self, node: int) -> tuple[frozenset[int], frozenset[int]]:
        """Return the objects that `node` may be, as representatives, and those it is made like.

        Its own is among them; a container counts as any of its items.
        """
        return self._upstream.reach(self.find(node), FAR)

    def holding(self, wanted: Callable[[Fact], bool]) -> set[int]:
        """Return the representatives of which a wanted fact is known."""
        return {n for n in range(len(self.up)) if any(map(wanted, self.stated[n]))}

    def representatives(self) -> list[int]:
        """Return the nodes that stand for all that was merged with them."""
        return [node for node, up in enumerate(self.up) if node == up]

    def feeding(self, root: int) -> list[int]:
        """Return the representatives of what flows into one straight away, or what it is made like."""
        return [self.find(source) for source in [*self.sources[root], *self.makers[root]]]

    def containers(self, root: int) -> list[int]:
        """Return the representatives of what a representative is an item of."""
        return [self.find(at) for at, name in self.owners[root] if name[:1] == "["]

    def holders(self, root: int) -> list[int]:
        """Return what a representative is a field of."""
        return [at for at, _ in self.owners[root]]

    def field_names(self, root: int) -> list[str]:
        """Return the names of the fields that a representative is."""
        return [name for _, name in self.owners[root]]

    def same(self, a: int, b: int) -> bool:
        """Tell whether two nodes may be the same object."""
        if self.find(a) == self.find(b):
            return True
        same_a, made_a = self.reach(a)
        same_b, made_b = self.reach(b)
        return bool(same_a & same_b or same_a & made_b or made_a & same_b)

    def is_blank(self, root: int) -> bool:
        """Tell whether nothing is known of a representative: merged into another one it changes nothing there."""
        links = (self.sources, self.makers, self.fields, self.owners, self.stated)
        return not any(link[root] for link in links)

    def _change(self, root: int) -> None:
        self.version += 1
        self._upstream.changing(root)

    def _add_field(self, root: int, name: str) -> int:
        made = self.new()
        self._upstream.adding(root, name)
        self.fields[root][name] = made
        self.owners[made][(root, name)] = None
        for watching in self.watched:
            watching.named(made, name)
        return made

    def _link(self, links: list[dict[int, None]], source: int, target: int) -> None:
        a, b = self.find(source), self.find(target)
        if a != b and a not in links[b]:
            self._change(b)
            links[b][a] = None
            for watching in self.watched:
                watching.linked(a, b)

    def _merge(self, a: int, b: int) -> None:
        a, b = self.find(a), self.find(b)
        if a == b:
            return
        if len(self.fields[a]) < len(self.fields[b]) or self.is_blank(a):
            a, b = b, a
        self.version += 1
        self._upstream.merging(a, b)
        self.up[b] = a
        for links in (self.sources, self.makers):
            links[a] |= links[b]
            links[b] = {}
        self.owners[a] |= self.owners[b]
        self.owners[b] = {}
        self._lasts[a] |= self._lasts[b]
        fields, self.fields[b] = self.fields[b], {}
        for name, inner in fields.items():
            known = self.fields[a].setdefault(name, inner)
            if known != inner:
                self._todo.append((known, inner))
        self._join(a, b, fields)
        for watching in self.watched:
            watching.merged(a, b)

    def _join(self, root: int, gone: int, new_fields: dict[str, int]) -> None:
        old = self.stated[root]
        new = {fact: None for fact in self.stated[gone] if fact not in old}
        self.stated[gone] = {}
        for facts, fields in ((old, new_fields), (new, self.fields[root])):
            for fact in facts:
                if isinstance(fact, Instance):
                    for name, inner in list(fields.items()):
                        self._todo.append((inner, self.attribute(fact.cls, name)))
        self.stated[root] = old | new
