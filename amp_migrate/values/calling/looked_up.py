"""Arguments of methods that are looked up by a name: ``getattr(hook, moment)(trainer)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import looked_up
from amp_migrate.modules.binding import fits
from amp_migrate.modules.model import CallSite, Function, Module
from amp_migrate.values.calling.passing import Passing
from amp_migrate.values.calling.spoken import Spoken
from amp_migrate.values.calling.targets import Target, reachable
from amp_migrate.values.expressions import Expressions
from amp_migrate.values.links.graph import MIDDLE
from amp_migrate.values.nodes import Nodes, function_of
from amp_migrate.values.objects import Instance


class LookedUp:
    """Says which methods such a call runs, or lets what it gives flow into each that it fits."""

    def __init__(
        self, nodes: Nodes, expressions: Expressions, passing: Passing, spoken: Spoken
    ) -> None:
        self._graph = nodes.graph
        self._expressions = expressions
        self._passing = passing
        self._spoken = spoken
        self._linked: set[tuple[ast.Call, Function]] = set()

    def link(self, module: Module, call: ast.Call) -> list[Target]:
        """Return the methods that a call of ``getattr(x, name)`` runs, where it is told which names it looks up.

        Where it is not, what it gives flows into the parameters of all methods that `x` may have.
        """
        found = looked_up(call.func)
        base = self._expressions.node(module, found[0]) if found is not None else None
        if found is None or base is None:
            return []
        function = function_of(module, call)
        site = CallSite(function, call, bound=True)
        names = self._spoken.names(function, found[1])
        facts = [f for f in self._graph.facts(base, MIDDLE) if isinstance(f, Instance)]
        if names is not None:
            named = [m for fact in facts for name in names for m in reachable(fact, name)]
            return [Target(m, bound=True) for m in dict.fromkeys(named) if _may_run(site, m)]
        for method in dict.fromkeys(method for fact in facts for method in _methods(fact)):
            if (call, method) not in self._linked and _may_run(site, method):
                self._linked.add((call, method))
                self._passing.arguments(module, site, Target(method, bound=True))
        return []


def _may_run(site: CallSite, method: Function) -> bool:
    return method.takes_receiver and not method.is_property and fits(site, method)


def _methods(instance: Instance) -> Iterator[Function]:
    """Yield the methods that an object may have, all but special ones."""
    for cls in [instance.cls, *(() if instance.exact else instance.cls.subclasses())]:
        for base in cls.mro():
            yield from (m for m in base.methods.values() if not m.name.startswith("__"))
