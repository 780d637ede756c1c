"""A forward or backward data-flow analysis to its fixpoint."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from amp_migrate.flow.cfg.points import Edge, Point
from amp_migrate.flow.dominance import reverse_postorder
from amp_migrate.flow.order import Order

V = TypeVar("V")


@dataclass(frozen=True)
class Solution(Generic[V]):
    """What holds on either side of every point that the analysis came to, in the direction of running.

    `before` and `after` are in the order of time also for a backward analysis; what is missing was not reached.
    """

    before: Mapping[Point, V]
    after: Mapping[Point, V]


def solve(
    order: Order,
    start: V,
    transfer: Callable[[Point, V], V],
    join: Callable[[V, V], V],
    *,
    along: Callable[[Edge, V, V], V | None] | None = None,
    backward: bool = False,
) -> Solution[V]:
    """Return the least solution of a data-flow problem over the edges of an order.

    `start` holds at the entry, or behind every end when the analysis runs `backward`. `transfer` carries a value over
    a point, `join` unites two that meet; both must be monotone on values without endless ascending chains, which are
    compared with `==`. `along` may change the value on an edge, given those before and after the point that it comes
    from; None says that the edge is not taken. The result does not depend on the order of visits.
    """
    given: dict[int, V] = {}
    results: dict[int, V] = {}
    onward = _onward(order, backward)
    roots = sorted(order.final) if backward else [order.entry.index]
    rank = _ranks([[target for target, _ in out] for out in onward], roots)
    waiting: list[tuple[int, int]] = []
    for root in roots:
        given[root] = start
        heapq.heappush(waiting, (rank[root], root))
    queued = set(roots)
    while waiting:
        _, node = heapq.heappop(waiting)
        queued.discard(node)
        value = given[node]
        result = transfer(order.points[node], value)
        results[node] = result
        for target, edge in onward[node]:
            passed = result if along is None else along(edge, value, result)
            if passed is None:
                continue
            known = given.get(target)
            joined = passed if target not in given else join(known, passed)  # type: ignore[arg-type]
            if target in given and joined == known:
                continue
            given[target] = joined
            if target not in queued:
                queued.add(target)
                heapq.heappush(waiting, (rank[target], target))
    first = {order.points[node]: value for node, value in sorted(given.items())}
    last = {order.points[node]: value for node, value in sorted(results.items())}
    return Solution(last, first) if backward else Solution(first, last)


def _onward(order: Order, backward: bool) -> list[list[tuple[int, Edge]]]:
    """The edges out of every point, in the direction of the analysis."""
    found: list[list[tuple[int, Edge]]] = [[] for _ in order.points]
    for out in order.edges:
        for edge in out:
            source, target = edge.source.index, edge.target.index
            if backward:
                source, target = target, source
            found[source].append((target, edge))
    return found


def _ranks(successors: list[list[int]], roots: list[int]) -> dict[int, int]:
    """Numbers that put a node behind those that lead to it, but for loops."""
    above = [*successors, roots]
    return {node: rank for rank, node in enumerate(reverse_postorder(above, len(successors)))}
