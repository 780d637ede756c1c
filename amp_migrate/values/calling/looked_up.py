"""Arguments of methods that are looked up by a name: ``getattr(hook, moment)(trainer)``."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import looked_up
from amp_migrate.modules.binding import fits
from amp_migrate.modules.model import CallSite, Function, Module
from amp_migrate.values.calling.passing import Passing
from amp_migrate.values.calling.spoken import Spoken
from amp_migrate.values.calling.targets import Target
from amp_migrate.values.expressions import Expressions
from amp_migrate.values.links.graph import MIDDLE
from amp_migrate.values.nodes import Nodes, function_of
from amp_migrate.values.objects import Instance


class LookedUp:
    """Lets what such a call gives flow into each method that it fits; which of them runs is not told here."""

    def __init__(
        self, nodes: Nodes, expressions: Expressions, passing: Passing, spoken: Spoken
    ) -> None:
        self._graph = nodes.graph
        self._expressions = expressions
        self._passing = passing
        self._spoken = spoken
        self._linked: set[tuple[ast.Call, Function]] = set()

    def link(self, module: Module, call: ast.Call) -> None:
        """Link the arguments of a call of ``getattr(x, name)`` with the parameters of the methods that `x` may have."""
        found = looked_up(call.func)
        base = self._expressions.node(module, found[0]) if found is not None else None
        if found is None or base is None:
            return
        function = function_of(module, call)
        site = CallSite(function, call, bound=True)
        names = self._spoken.names(function, found[1])
        for fact in list(self._graph.facts(base, MIDDLE)):
            for method in _methods(fact, names) if isinstance(fact, Instance) else ():
                if (call, method) not in self._linked and fits(site, method):
                    self._linked.add((call, method))
                    self._passing.arguments(module, site, Target(method, bound=True))


def _methods(instance: Instance, names: frozenset[str] | None) -> list[Function]:
    """Return the methods of an object that some names mean, all but special ones where the names are not told."""
    classes = [instance.cls, *(() if instance.exact else instance.cls.subclasses())]
    return list(
        dict.fromkeys(
            method
            for cls in classes
            for base in cls.mro()
            for method in base.methods.values()
            if method.takes_receiver and not method.is_property
            if (method.name in names if names is not None else not method.name.startswith("__"))
        )
    )
