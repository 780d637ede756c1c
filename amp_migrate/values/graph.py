"""Nodes that stand for objects: merged where they are the same, linked where one may flow into another."""

from __future__ import annotations

from collections.abc import Callable

from amp_migrate.project.model import Class
from amp_migrate.values.objects import Fact, Instance

EACH = "[*]"
APPENDED = "[+]"
VALUES = "values()"


# How many steps the flow of one object is followed, nearest first, and how deep into attributes.
FAR = 2000
MIDDLE = 300
_NEAR = 100
_DEEP = 3
_Step = tuple[int, tuple[str, ...], bool]


class Graph:
    """Union-find over nodes with fields, and directed flow between classes of merged nodes.

    A field is an attribute name or ``[key]``. Merging two nodes merges their fields. What flows from a
    node into another is seen there, but does not make two sources of one node the same.
    """

    def __init__(self, attribute: Callable[[Class, str], int]) -> None:
        """Start empty; `attribute` gives the node of an attribute of a class's instances."""
        self.version = 0
        self._attribute = attribute
        self._up: list[int] = []
        self._fields: list[dict[str, int]] = []
        self._sources: list[dict[int, None]] = []
        self._makers: list[dict[int, None]] = []
        self._owners: list[dict[tuple[int, str], None]] = []
        self._facts: list[dict[Fact, None]] = []
        self._lasts: list[bool] = []
        self._todo: list[tuple[int, int]] = []
        self._busy = False
        self._reached: dict[int, tuple[set[int], set[int]]] = {}
        self._stated: dict[tuple[int, int], list[Fact]] = {}
        self._read_at = 0
        self._known_above: dict[int, list[tuple[int, str]]] = {}
        self._above_at = 0

    def new(self) -> int:
        """Return a fresh node."""
        self._up.append(len(self._up))
        self._fields.append({})
        self._sources.append({})
        self._makers.append({})
        self._owners.append({})
        self._facts.append({})
        self._lasts.append(False)
        return len(self._up) - 1

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self._up)

    def find(self, node: int) -> int:
        """Return the representative of the nodes merged with `node`."""
        up = self._up
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
        self._link(self._sources, source, target)

    def make(self, source: int, target: int) -> None:
        """Let `target` be a new object each time, of the kind that `source` stands for."""
        self._link(self._makers, source, target)

    def state(self, node: int, fact: Fact) -> None:
        """Note what the object at `node` is."""
        root = self.find(node)
        if fact in self._facts[root]:
            return
        self.version += 1
        self._facts[root][fact] = None
        if isinstance(fact, Instance):
            for name, inner in list(self._fields[root].items()):
                self.merge(inner, self._attribute(fact.cls, name))

    def field(self, node: int, name: str) -> int:
        """Return the node of an attribute or item of `node`."""
        root = self.find(node)
        known = self._fields[root].get(name)
        if known is not None:
            return known
        made = self.new()
        self._fields[root][name] = made
        self._owners[made][(root, name)] = None
        for fact in list(self._facts[root]):
            if isinstance(fact, Instance):
                self.merge(made, self._attribute(fact.cls, name))
        return made

    def plain_field(self, node: int, name: str) -> int:
        """Return the node of an attribute, without asking what classes the object has."""
        root = self.find(node)
        known = self._fields[root].get(name)
        if known is None:
            known = self._fields[root][name] = self.new()
            self._owners[known][(root, name)] = None
        return known

    def items(self, node: int) -> list[str]:
        """Return the field names of the items that were put into a node, one by one or appended."""
        names = self._fields[self.find(node)]
        return [name for name in names if name.startswith("[") and name != EACH]

    def keep(self, node: int) -> None:
        """Note that the object at `node` outlives the function that makes it."""
        self._lasts[self.find(node)] = True

    def near(self, node: int) -> set[int]:
        """Return the representatives of the objects that `node` may be, from close by."""
        same, _ = self._reach(self.find(node), items=False, far=_NEAR)
        return {self.find(root) for root in same}

    def lasts(self, root: int) -> bool:
        """Tell whether the object of a representative was kept."""
        return self._lasts[root]

    def own_facts(self, node: int) -> list[Fact]:
        """Return what is known of the object itself, without what flows in."""
        return list(self._facts[self.find(node)])

    def facts(self, node: int, far: int = FAR) -> list[Fact]:
        """Return what is known of every object that `node` may be, as far as `far` steps show."""
        root = self.find(node)
        if self._facts[root] and not self._sources[root] and not self._makers[root]:
            return list(self._facts[root])
        self._refresh()
        key = (root, far)
        if key not in self._stated:
            same, made = self._reach(root, items=False, far=far)
            roots = map(self.find, [*same, *made])
            self._stated[key] = list(dict.fromkeys(f for at in roots for f in self._facts[at]))
        return self._stated[key]

    def reach(self, node: int) -> tuple[set[int], set[int]]:
        """Return the objects that `node` may be, as representatives, and those it is made like.

        Its own is among them; a container counts as any of its items.
        """
        root = self.find(node)
        self._refresh()
        if root not in self._reached:
            same, made = self._reach(root, items=True)
            # Looking may have created attributes, and so merged nodes.
            self._reached[root] = ({*map(self.find, same)}, {*map(self.find, made)})
        return self._reached[root]

    def holding(self, wanted: Callable[[Fact], bool]) -> set[int]:
        """Return the representatives of which a wanted fact is known."""
        return {n for n in range(len(self._up)) if any(map(wanted, self._facts[n]))}

    def representatives(self) -> list[int]:
        """Return the nodes that stand for all that was merged with them."""
        return [node for node, up in enumerate(self._up) if node == up]

    def feeding(self, root: int) -> list[int]:
        """Return the representatives of what flows into one straight away, or what it is made like."""
        return [self.find(source) for source in [*self._sources[root], *self._makers[root]]]

    def field_names(self, root: int) -> list[str]:
        """Return the names of the fields that a representative is."""
        return [name for _, name in self._owners[root]]

    def _refresh(self) -> None:
        if self._read_at != self.version:
            self._reached.clear()
            self._stated.clear()
            self._read_at = self.version

    def same(self, a: int, b: int) -> bool:
        """Tell whether two nodes may be the same object."""
        if self.find(a) == self.find(b):
            return True
        same_a, made_a = self.reach(a)
        same_b, made_b = self.reach(b)
        return bool(same_a & same_b or same_a & made_b or made_a & same_b)

    def _reach(
        self, root: int, items: bool, far: int = FAR
    ) -> tuple[dict[int, None], dict[int, None]]:
        """Follow the flow backwards from a node, and from the objects whose field it is."""
        same: dict[int, None] = {}
        made: dict[int, None] = {}
        queue: list[_Step] = [(root, (), False)]
        seen = {queue[0]}
        for step in queue:
            node, fields, by_call = step
            if not fields:
                (made if by_call else same).setdefault(node)
            for before in self._before(step, items):
                if before not in seen and len(seen) < far:
                    seen.add(before)
                    queue.append(before)
        return same, made

    def _before(self, step: _Step, items: bool) -> list[_Step]:
        find = self.find
        node, fields, by_call = find(step[0]), step[1], step[2]
        found = []
        if self._sources[node]:
            found += [(find(source), fields, by_call) for source in self._sources[node]]
        if self._makers[node]:
            found += [(find(source), fields, True) for source in self._makers[node]]
        if fields:
            found += [(item, fields[1:], by_call) for item in self._inner(node, fields[0])]
        elif items:
            inside = [inner for name, inner in self._fields[node].items() if name.startswith("[")]
            found += [(find(item), (), by_call) for item in inside]
        if self._owners[node] and len(fields) < _DEEP:
            found += [(at, (name, *fields), by_call) for at, name in self._above(node)]
        return found

    def _above(self, node: int) -> list[tuple[int, str]]:
        """Return the objects whose field a node is, as far as another may flow into them, with its name there."""
        if self._above_at != self.version:
            self._known_above.clear()
            self._above_at = self.version
        known = self._known_above.get(node)
        if known is None:
            owners = dict.fromkeys((self.find(owner), name) for owner, name in self._owners[node])
            known = [(at, name) for at, name in owners if name[:1] == "[" or self._fed(at)]
            self._known_above[node] = known
        return known

    def _fed(self, root: int) -> bool:
        """Tell whether another object may flow into a node, or into one that it is a field of."""
        return bool(self._sources[root] or self._makers[root] or self._owners[root])

    def _inner(self, root: int, name: str) -> list[int]:
        fields = self._fields[root]
        names = [name] if name in fields else []
        if name == EACH:
            names += self.items(root)
        elif name[:1] == "[" and APPENDED in fields:
            names.append(APPENDED)
        found = [self.find(fields[item]) for item in names]
        if not found and self._facts[root]:
            facts = [fact for fact in self._facts[root] if isinstance(fact, Instance)]
            found = [self.find(self._attribute(fact.cls, name)) for fact in facts]
        return found

    def _link(self, links: list[dict[int, None]], source: int, target: int) -> None:
        a, b = self.find(source), self.find(target)
        if a != b and a not in links[b]:
            links[b][a] = None
            self.version += 1

    def _merge(self, a: int, b: int) -> None:
        a, b = self.find(a), self.find(b)
        if a == b:
            return
        if len(self._fields[a]) < len(self._fields[b]):
            a, b = b, a
        self.version += 1
        self._up[b] = a
        for links in (self._sources, self._makers):
            links[a] |= links[b]
            links[b] = {}
        self._owners[a] |= self._owners[b]
        self._owners[b] = {}
        self._lasts[a] |= self._lasts[b]
        fields, self._fields[b] = self._fields[b], {}
        for name, inner in fields.items():
            known = self._fields[a].setdefault(name, inner)
            if known != inner:
                self._todo.append((known, inner))
        self._join(a, b, fields)

    def _join(self, root: int, gone: int, new_fields: dict[str, int]) -> None:
        old = self._facts[root]
        new = {fact: None for fact in self._facts[gone] if fact not in old}
        self._facts[gone] = {}
        for facts, fields in ((old, new_fields), (new, self._fields[root])):
            for fact in facts:
                if isinstance(fact, Instance):
                    for name, inner in list(fields.items()):
                        self._todo.append((inner, self._attribute(fact.cls, name)))
        self._facts[root] = old | new
