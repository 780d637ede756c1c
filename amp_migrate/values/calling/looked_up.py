"""Arguments of methods that are looked up by a name: ``getattr(hook, moment)(trainer)``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from amp_migrate.facts.constants import may_be
from amp_migrate.facts.paths import looked_up
from amp_migrate.modules.binding import fits
from amp_migrate.modules.model import CallSite, Function, Module
from amp_migrate.values.calling.passing import Passing
from amp_migrate.values.calling.spoken import Spoken
from amp_migrate.values.calling.targets import Target, reachable
from amp_migrate.values.expressions import Expressions
from amp_migrate.values.links.graph import MIDDLE
from amp_migrate.values.nodes import Nodes, function_of
from amp_migrate.values.objects import Bound, Instance


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

    def give(self, modules: Iterable[Module]) -> None:
        """Let what objects have under the names that a lookup is told flow to where it is held: ``f = getattr(x, name)``."""
        for module, call, base, name in self._computed(modules):
            held = self._expressions.node(module, call)
            if held is None or module.tree.call_of(call) is not None:
                continue
            for each in self._spoken.names(function_of(module, call), name) or ():
                self._graph.flow(self._graph.field(base, each), held)

    def untold(
        self, modules: Iterable[Module], sites: Mapping[Function, Sequence[CallSite]]
    ) -> list[tuple[Module, ast.Call, Function]]:
        """Return the calls of what is looked up by a name that is not told, with the methods that each may run.

        Where it is held, the methods are what is held, unless only attributes of it are read, as on the way down a network.
        Those behind which the lookup itself runs are none of them.
        """
        found: list[tuple[Module, ast.Call, Function]] = []
        for module, call, base, name in self._computed(modules):
            function = function_of(module, call)
            if self._spoken.names(function, name) is not None:
                continue
            facts = [f for f in self._graph.facts(base, MIDDLE) if isinstance(f, Instance)]
            behind = _callers(function, sites) if facts else frozenset()
            methods = [
                (m, fact.cls)
                for fact in facts
                for m in _methods(fact)
                if may_be(name, m.name) and m.takes_receiver and not m.is_property
                if m not in behind
            ]
            up = module.tree.call_of(call)
            if up is not None:
                run = dict.fromkeys(m for m, _ in methods)
                found += [(module, up, m) for m in run if fits(CallSite(function, up, True), m)]
            elif (held := self._expressions.node(module, call)) is not None and _goes_on(
                module, call
            ):
                for method, cls in methods:
                    self._graph.state(held, Bound(method, cls))
        return found

    def _computed(
        self, modules: Iterable[Module]
    ) -> Iterator[tuple[Module, ast.Call, int, ast.expr]]:
        """Yield the lookups by a computed name, with the object and the name."""
        for module in modules:
            for call in module.tree.nodes(ast.Call):
                found = looked_up(call)
                if found is None or isinstance(found[1], ast.Constant):
                    continue
                base = self._expressions.node(module, found[0])
                if base is not None:
                    yield module, call, base, found[1]

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
            lookup = self._expressions.lookup
            named = [m for fact in facts for name in names for m in reachable(lookup, fact, name)]
            return [Target(m, bound=True) for m in dict.fromkeys(named) if _may_run(site, m)]
        for method in dict.fromkeys(method for fact in facts for method in _methods(fact)):
            if (call, method) not in self._linked and _may_run(site, method):
                self._linked.add((call, method))
                self._passing.arguments(module, site, Target(method, bound=True))
        return []


def _goes_on(module: Module, call: ast.Call) -> bool:
    """Tell whether what is looked up may be called, by whatever name: it is more than what attributes are read of."""
    up = module.tree.parent(call)
    if not isinstance(up, ast.Assign) or not all(isinstance(t, ast.Name) for t in up.targets):
        return True
    targets = [target for target in up.targets if isinstance(target, ast.Name)]
    reads = [r for t in targets for r in module.scopes.reads(module.scopes.owner(t), t.id)]
    return not all(_is_walked(module, read) for read in reads)


def _is_walked(module: Module, name: ast.Name) -> bool:
    """Tell whether an attribute or item of a variable is read or looked up there."""
    up = module.tree.parent(name)
    if isinstance(up, ast.Subscript):
        return up.value is name
    if isinstance(up, ast.Attribute):
        return not isinstance(module.tree.parent(up), ast.Call)
    found = looked_up(up) if up is not None else None
    return found is not None and found[0] is name


def _callers(
    function: Function, sites: Mapping[Function, Sequence[CallSite]]
) -> frozenset[Function]:
    """Return a function and all that lead to a call of it."""
    found = {function}
    queue = [function]
    for each in queue:
        above = {site.function for site in sites.get(each, ())}
        above |= {each.parent} if each.parent is not None else set()
        queue += above - found
        found |= above
    return frozenset(found)


def _may_run(site: CallSite, method: Function) -> bool:
    return method.takes_receiver and not method.is_property and fits(site, method)


def _methods(instance: Instance) -> Iterator[Function]:
    """Yield the methods that an object may have, all but special ones."""
    for cls in [instance.cls, *(() if instance.exact else instance.cls.subclasses())]:
        for base in cls.mro():
            yield from (m for m in base.methods.values() if not m.name.startswith("__"))
