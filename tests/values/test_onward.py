"""Where objects can flow to in a graph that grows."""

from __future__ import annotations

import random

from amp_migrate.values.links.graph import Graph
from amp_migrate.values.links.onward import Spread, Ways, onward


def test_what_is_reached_in_a_growing_graph_is_what_a_fresh_look_finds() -> None:
    chance = random.Random(0)
    for _ in range(40):
        graph = Graph(lambda cls, name: 0)
        nodes = [graph.new() for _ in range(30)]
        graph.state(nodes[0], "apex.amp")
        ways = Ways(graph)
        spread = Spread(graph, ways, "apex.amp".__eq__)
        graph.watched += [spread, ways]
        for _ in range(60):
            one, other = chance.choices(nodes, k=2)
            what = chance.randrange(12)
            if what < 5:
                graph.flow(one, other)
            elif what < 8:
                nodes.append(graph.field(one, chance.choice("abcdefgh")))
            elif what < 10:
                graph.merge(one, graph.field(other, chance.choice("abcdefgh")))
            elif what < 11:
                graph.merge(one, other)
            elif chance.randrange(10) == 0:
                graph.state(one, "apex.amp")
            fresh = onward(graph, graph.holding("apex.amp".__eq__), lambda *_: None)
            assert {n for n in range(graph.size) if spread.reaches(n)} == fresh.found
