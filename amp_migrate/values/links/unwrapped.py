"""What ``x.module`` is: an attribute where the class of ``x`` has one, and otherwise ``x``, as a wrapper of torch is its network."""

from __future__ import annotations

from functools import cached_property

from amp_migrate.values.links.graph import MIDDLE
from amp_migrate.values.nodes import Nodes
from amp_migrate.values.objects import Fact, Instance

UNWRAPS = "module"


class Unwrapped:
    """Tells what is behind a node as soon as it is known what the node is; before that a node of its own stands for it."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._graph = nodes.graph
        self._open: dict[int, int] = {}

    def behind(self, base: int) -> int:
        """Return the node of what an object calls ``module``."""
        if not self._ever:
            return base
        if any(self._has(fact) for fact in self._graph.own_facts(base)):
            return self._graph.field(base, UNWRAPS)
        if base not in self._open:
            self._open[base] = self._graph.new()
        return self._open[base]

    def tell(self, for_good: bool = False) -> None:
        """Say what is behind the nodes that something is known of, or, `for_good`, behind all of them."""
        for base, made in list(self._open.items()):
            facts = self._graph.facts(base, MIDDLE)
            having = [fact for fact in facts if self._has(fact)]
            if not facts and not for_good:
                continue
            del self._open[base]
            self._graph.merge(made, self._graph.field(base, UNWRAPS) if having else base)
            if having and len(having) < len(facts):
                self._graph.flow(base, made)

    @cached_property
    def _ever(self) -> bool:
        return any(UNWRAPS in names for names in self._nodes.mentions.values())

    def _has(self, fact: Fact) -> bool:
        classes = fact.cls.mro() if isinstance(fact, Instance) else ()
        return any(UNWRAPS in self._nodes.mentions.get(cls, ()) for cls in classes)
