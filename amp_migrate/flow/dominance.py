"""Dominators and strongly connected components of a graph of numbered nodes."""

from __future__ import annotations

from collections.abc import Sequence

Successors = Sequence[Sequence[int]]


def reversed_edges(successors: Successors) -> list[list[int]]:
    """Return the predecessors of every node."""
    into: list[list[int]] = [[] for _ in successors]
    for source, out in enumerate(successors):
        for target in out:
            into[target].append(source)
    return into


def reverse_postorder(successors: Successors, root: int) -> list[int]:
    """Return what `root` reaches, every node before its successors but for edges that go back."""
    seen = {root}
    done: list[int] = []
    stack = [(root, iter(successors[root]))]
    while stack:
        node, rest = stack[-1]
        for target in rest:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(successors[target])))
                break
        else:
            stack.pop()
            done.append(node)
    done.reverse()
    return done


def immediate_dominators(successors: Successors, root: int) -> list[int]:
    """Return the immediate dominator of every node: `root` for itself, -1 for what it does not reach.

    The algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001).
    """
    order = reverse_postorder(successors, root)
    rank = [-1] * len(successors)
    for position, node in enumerate(order):
        rank[node] = position
    preds = _telling_predecessors(successors, order, rank)
    # from here on nodes are known by their rank, so that a dominator is always the smaller number
    idom = [-1] * len(order)
    idom[0] = 0
    changed = True
    while changed:
        changed = False
        for node in range(1, len(order)):
            new = -1
            for pred in preds[node]:
                if idom[pred] < 0:
                    continue
                if new < 0:
                    new = pred
                    continue
                other = pred
                while new != other:
                    while other > new:
                        other = idom[other]
                    while new > other:
                        new = idom[new]
            if idom[node] != new:
                idom[node] = new
                changed = True
    found = [-1] * len(successors)
    for position, node in enumerate(order):
        found[node] = order[idom[position]]
    return found


def _telling_predecessors(
    successors: Successors, order: Sequence[int], rank: Sequence[int]
) -> list[list[int]]:
    """Predecessors by rank, without those that cannot change a dominator.

    Where the only predecessor of `q` leads to a handler too, then so does every path through `q` before it gets
    to `q`: the edge from `q` says nothing new. It is what keeps long `try` bodies cheap.
    """
    preds: list[list[int]] = [[] for _ in order]
    for position, node in enumerate(order):
        for target in successors[node]:
            preds[rank[target]].append(position)
    telling = preds[:]
    for node, into in enumerate(preds):
        if len(into) > 2:
            all_of_them = set(into)
            telling[node] = [
                q for q in into if not q or len(preds[q]) != 1 or preds[q][0] not in all_of_them
            ]
    return telling


def components(successors: Successors, nodes: Sequence[int]) -> list[list[int]]:
    """Return the strongly connected components of the part of a graph that `nodes` span.

    A component comes after all those that it leads to (Tarjan).
    """
    part = set(nodes)
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    found: list[list[int]] = []
    for start in nodes:
        if start in number:
            continue
        number[start] = low[start] = len(number)
        path.append(start)
        on_path.add(start)
        stack = [(start, iter(successors[start]))]
        while stack:
            node, rest = stack[-1]
            for target in rest:
                if target not in part:
                    continue
                if target not in number:
                    number[target] = low[target] = len(number)
                    path.append(target)
                    on_path.add(target)
                    stack.append((target, iter(successors[target])))
                    break
                if target in on_path:
                    low[node] = min(low[node], number[target])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[node])
                if low[node] == number[node]:
                    at = _last_index(path, node)
                    found.append(path[at:])
                    on_path.difference_update(path[at:])
                    del path[at:]
    return found


def _last_index(path: Sequence[int], node: int) -> int:
    at = len(path) - 1
    while path[at] != node:
        at -= 1
    return at


def reach_masks(successors: Successors, labels: Sequence[int] | None = None) -> list[int]:
    """Return for every node the labels, as bits, of the nodes at the end of a path of one edge or more.

    Without `labels` every node has its number for a label, and the answer is the set of nodes.
    """
    bits = [1 << node for node in range(len(successors))] if labels is None else labels
    masks = [0] * len(successors)
    for component in components(successors, range(len(successors))):
        mask = 0
        for node in component:
            for target in successors[node]:
                mask |= masks[target] | bits[target]
        for node in component:
            masks[node] = mask
    return masks
