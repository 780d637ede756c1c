"""What objects a node of the graph may be: the flow followed backwards, and what was found kept while it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from amp_migrate.modules.model import Class
from amp_migrate.values.links.steps import Near, Nodes, Pending
from amp_migrate.values.objects import Fact, Instance

EACH = "[*]"
APPENDED = "[+]"

# How deep the flow of one object is followed into attributes.
_DEEP = 3
_HOLDERS = -1
# A step on the way back is one number: the node, the number of the fields that are looked for in it, and whether a
# call made what comes from there.
_NODE = 33
_REST = (1 << _NODE) - 1
_INSIDE = _REST - 1
_VAIN = 400  # steps in a row that may look for a field without finding one
# How many steps are kept before all are found anew.
_MANY = 200_000
# The representative that was asked for, and how far its facts were: 0 for what it reaches, _HOLDERS for its holders.
_Answer = tuple[int, int]


class Flows(Protocol):
    """Merged nodes by their representatives: fields, what flows in or makes, whose field each is, and what is stated.

    `up` is the node that each was merged into, itself for a representative.
    """

    up: list[int]
    fields: list[dict[str, int]]
    sources: list[dict[int, None]]
    makers: list[dict[int, None]]
    owners: list[dict[tuple[int, str], None]]
    stated: list[dict[Fact, None]]

    @property
    def attribute(self) -> Callable[[Class, str], int]:
        """Gives the node of an attribute of a class's instances."""

    @property
    def is_blank(self) -> Callable[[int], bool]:
        """Tells whether nothing is known of a representative."""

    @property
    def find(self) -> Callable[[int], int]:
        """Gives the representative of a node."""


class Upstream:
    """The objects that nodes may be. Answers are kept until one of the nodes that they were read off changes."""

    def __init__(self, graph: Flows) -> None:
        self._graph = graph
        self._reached: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        self._stated: dict[tuple[int, int], list[Fact]] = {}
        self._above: dict[int, list[tuple[int, str]]] = {}
        self._leaning: dict[int, list[_Answer]] = {}
        self._missed: set[tuple[int, str]] = set()
        self._near: dict[int, Near] = {}
        self._naming: dict[int, set[int]] = {}
        self._pending = Pending()
        self._steps = 0
        self._reading: set[int] = set()
        self._stale = False

    def facts(self, root: int, far: int) -> list[Fact]:
        """Return what is known of every object that a representative may be, as far as `far` steps show."""
        known = self._stated.get((root, far))
        if known is None:
            same, made = self.follow(root, items=False, far=far)
            stated = [self._graph.stated[self._graph.find(at)] for at in (*same, *made)]
            known = list(dict.fromkeys(fact for facts in stated for fact in facts))
            if self._keeps((root, far)):
                self._stated[root, far] = known
        return known

    def reach(self, root: int, far: int) -> tuple[frozenset[int], frozenset[int]]:
        """Return the representatives of the objects that one may be, and of those it is made like."""
        known = self._reached.get(root)
        if known is None:
            same, made = self.follow(root, items=True, far=far)
            # Looking may have created attributes, and so merged nodes.
            find = self._graph.find
            known = (frozenset(map(find, same)), frozenset(map(find, made)))
            if self._keeps((root, 0)):
                self._reached[root] = known
        return known

    def follow(self, root: int, items: bool, far: int) -> tuple[dict[int, None], dict[int, None]]:
        """Follow the flow backwards from a representative, and from the objects whose field it is."""
        same: dict[int, None] = {}
        made: dict[int, None] = {}
        find, up = self._graph.find, self._graph.up
        if self._steps > _MANY:
            self._near.clear()
            self._naming.clear()
            self._pending = Pending()
            self._steps = 0
        kind = int(items) << _NODE
        queue = [root << _NODE]
        seen = set(queue)
        reading = self._reading = set()
        self._stale = False
        vain, left = 0, far - 1
        nears, see, read, enqueue = self._near, seen.add, reading.add, queue.append
        for step in queue:
            node = step >> _NODE
            at = up[node]
            if up[at] != at:
                at = find(at)
            read(at)
            if not step & _INSIDE:
                (made if step & 1 else same)[node] = None
                vain = 0
            elif vain > _VAIN:
                break
            else:
                vain += 1
            if not left:
                continue
            near = nears.get(at)
            if near is None:
                near = nears[at] = self._nearest(at)
            rest = step & _REST
            steps = near.steps.get(rest | kind)
            if steps is None:
                steps = near.steps[rest | kind] = self._before(at, near, rest, items)
                self._steps += 1
            for before in steps:
                if before not in seen:
                    see(before)
                    enqueue(before)
                    left -= 1
                    if not left:
                        break
        return same, made

    def changing(self, root: int) -> None:
        """Forget what was read off a representative that is about to change."""
        leaning = self._leaning.pop(root, ())
        self._forget(root, leaning)
        for at, far in leaning:
            if far == _HOLDERS:
                self._above.pop(at, None)
                self.changing(at)

    def merging(self, root: int, gone: int) -> None:
        """Forget what was read off two representatives, of which one is about to be merged into the other.

        A blank one changes nothing of the other, nor does one that is only held by objects into which nothing flows.
        """
        if not self._adds_nothing(root, gone):
            self.changing(root)
        self.changing(gone)
        for at in self._naming.pop(gone, ()):
            if at in self._near and gone in self._near[at].named:
                del self._near[at]

    def _adds_nothing(self, root: int, gone: int) -> bool:
        """Tell whether no answer that was read off a representative changes when another one is merged into it."""
        graph = self._graph
        links = (graph.sources, graph.makers, graph.fields, graph.stated)
        if any(link[gone] for link in links):
            return False
        owners = [(graph.find(at), name) for at, name in graph.owners[gone]]
        return not any(
            self._is_fed(root, at, _DEEP - 1) or self._mixes(at, name) for at, name in owners
        )

    def adding(self, root: int, name: str) -> None:
        """Forget what was read off a representative that is about to get a field, where that could have told.

        Which objects hold others hangs on no field of theirs, but for what is appended.
        """
        if name == APPENDED:
            self.changing(root)
        elif name[:1] == "[" or (root, name) in self._missed:
            self._missed.discard((root, name))
            leaning = self._leaning.pop(root, [])
            self._forget(root, leaning)
            if held := [answer for answer in leaning if answer[1] == _HOLDERS]:
                self._leaning[root] = held

    def _forget(self, root: int, leaning: Iterable[_Answer]) -> None:
        """Forget answers that were read off a representative, but for who holds it."""
        self._stale |= root in self._reading
        self._near.pop(root, None)
        for at, far in leaning:
            if far > 0:
                self._stated.pop((at, far), None)
            elif far == 0:
                self._reached.pop(at, None)

    def _keeps(self, answer: _Answer) -> bool:
        """Note what an answer was read off; False where that changed in the meantime."""
        if not self._stale:
            for at in self._reading:
                self._leaning.setdefault(at, []).append(answer)
        return not self._stale

    def _before(self, at: int, near: Near, rest: int, items: bool) -> Nodes:
        """Return the steps before one at a representative; `rest` is what the number of the step says beside it."""
        fields, call = rest >> 1, rest & 1
        pending = self._pending
        found = [source << _NODE | rest for source in near.sources]
        if near.makers:
            found += [source << _NODE | rest | 1 for source in near.makers]
        if fields:
            name, inside = pending.split[fields]
            inner = near.inner.get(name)
            if inner is None:
                inner = near.inner[name] = self._inner(at, name)
                near.named.update(inner)
                self._named(at, inner)
            low = inside << 1 | call
            found += [item << _NODE | low for item in inner]
        elif items:
            found += [item << _NODE | call for item in near.items]
        if near.holders and pending.depth[fields] < _DEEP:
            within = pending.within
            found += [
                holder << _NODE | within(name, fields) << 1 | call for holder, name in near.holders
            ]
        return tuple(dict.fromkeys(found))

    def _nearest(self, at: int) -> Near:
        graph = self._graph
        find = graph.find
        items = [inner for name, inner in graph.fields[at].items() if name[:1] == "["]
        lists = (graph.sources[at], graph.makers[at], items)
        sources, makers, inside = (tuple(dict.fromkeys(map(find, nodes))) for nodes in lists)
        near = Near(sources, makers, tuple(self._holders(at)), inside)
        self._named(at, near.named)
        return near

    def _named(self, at: int, nodes: Iterable[int]) -> None:
        """Note what names nodes, to forget it when one of them is merged into another."""
        for node in nodes:
            self._naming.setdefault(node, set()).add(at)

    def _holders(self, node: int) -> list[tuple[int, str]]:
        """Return the objects whose field a node is, as far as another may flow into them, with its name there."""
        known = self._above.get(node)
        if known is None:
            self._leaning.setdefault(node, []).append((node, _HOLDERS))
            find = self._graph.find
            owners = dict.fromkeys((find(at), name) for at, name in self._graph.owners[node])
            known = self._above[node] = [
                (at, name)
                for at, name in owners
                if self._is_fed(node, at, _DEEP - 1) or self._mixes(at, name)
            ]
        return known

    def _is_fed(self, asked: int, root: int, up: int) -> bool:
        """Tell whether another object may be at a node, or at one that it is a field of, some levels up."""
        self._leaning.setdefault(root, []).append((asked, _HOLDERS))
        graph = self._graph
        if graph.sources[root] or graph.makers[root]:
            return True
        return up > 0 and any(
            self._is_fed(asked, graph.find(at), up - 1) or self._mixes(graph.find(at), name)
            for at, name in graph.owners[root]
        )

    def _mixes(self, root: int, name: str) -> bool:
        """Tell whether an item of a node may be another item of it as well."""
        return name == EACH or (name[:1] == "[" and APPENDED in self._graph.fields[root])

    def _inner(self, root: int, name: str) -> Nodes:
        graph = self._graph
        fields = graph.fields[root]
        found = [fields[name]] if name in fields else []
        if name == EACH:
            found += [
                inner for other, inner in fields.items() if other[:1] == "[" and other != EACH
            ]
        elif name[:1] == "[" and APPENDED in fields:
            found.append(fields[APPENDED])
        if not found and graph.stated[root]:
            facts = [fact for fact in graph.stated[root] if isinstance(fact, Instance)]
            found = [graph.attribute(fact.cls, name) for fact in facts]
        if name[:1] != "[" and name not in graph.fields[root]:
            self._missed.add((root, name))
        return tuple(dict.fromkeys(map(graph.find, found)))
