"""The loops of a graph, one inside the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amp_migrate.flow.cfg.points import Edge, Point
from amp_migrate.flow.dominance import components, reverse_postorder, reversed_edges


@dataclass(frozen=True, eq=False)
class Loop:
    """A part of a graph that can run again: every point of `body` reaches every other one inside of it.

    `headers` are the points where it is entered; one for every loop of a structured program. `back` are the edges
    inside it that lead to a header, `exits` the edges that leave it. `parent` is the loop around it.
    """

    headers: tuple[Point, ...]
    body: frozenset[Point]
    back: tuple[Edge, ...]
    exits: tuple[Edge, ...]
    parent: Loop | None

    @property
    def header(self) -> Point:
        """The point where the loop is entered; the first one in the text where there are several."""
        return self.headers[0]


def find_loops(
    points: Sequence[Point], edges: Sequence[Sequence[Edge]], entry: Point
) -> tuple[Loop, ...]:
    """Return the loops that `entry` leads to, each before those inside it.

    A loop is a strongly connected part; what is left of it without the edges to its headers has the loops inside
    it. Where there is one header that is the natural loop of the edges that go back to it.
    """
    successors = [[e.target.index for e in out] for out in edges]
    reached = reverse_postorder(successors, entry.index)
    found: list[Loop] = []
    waiting: list[tuple[list[int], Loop | None]] = [(sorted(reached), None)]
    into = reversed_edges(successors)
    dead = set(range(len(points))) - set(reached)
    while waiting:
        nodes, parent = waiting.pop()
        closed = {p.index for p in parent.headers} if parent else set()
        # without the edges to the headers of the parent its headers are in no loop inside it
        for component in components(successors, [n for n in nodes if n not in closed]):
            if len(component) == 1 and component[0] not in successors[component[0]]:
                continue
            inside = set(component)
            entered = {n for n in component if not inside.issuperset(set(into[n]) - dead)}
            loop = _loop(
                points, edges, sorted(component), entered | ({entry.index} & inside), parent
            )
            found.append(loop)
            waiting.append((sorted(component), loop))
    return tuple(sorted(found, key=lambda loop: (-len(loop.body), loop.header.index)))


def _loop(
    points: Sequence[Point],
    edges: Sequence[Sequence[Edge]],
    component: Sequence[int],
    entered: set[int],
    parent: Loop | None,
) -> Loop:
    inside = set(component)
    headers = tuple(points[node] for node in sorted(entered))
    return Loop(
        headers,
        frozenset(points[node] for node in component),
        tuple(e for node in component for e in edges[node] if e.target in headers),
        tuple(e for node in component for e in edges[node] if e.target.index not in inside),
        parent,
    )
