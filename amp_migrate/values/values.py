"""Which expressions hold the same object, across functions, classes and files."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from amp_migrate.facts.closure import closure
from amp_migrate.modules.lookup import Lookup
from amp_migrate.modules.model import Class, Function, Module
from amp_migrate.values.assignments import Flow
from amp_migrate.values.calling.calls import Calls
from amp_migrate.values.calling.methods import may_run, only_clears, state_methods
from amp_migrate.values.expressions import Expressions
from amp_migrate.values.links.inside import Inside
from amp_migrate.values.links.onward import Onward, Spread, Ways, onward
from amp_migrate.values.links.settle import settle
from amp_migrate.values.nodes import Nodes
from amp_migrate.values.objects import Bound, Fact, Held, Instance, Made, Method, Partial, Written

Named = ast.expr | ast.arg
Near = Callable[[Module, Named], bool]
"""Tells, quickly and never wrongly no, whether some objects may be at an expression."""


class Values:
    """Names that hold the same object, without regard to the order of statements.

    Assignments, wrappers (``DDP(model)``, ``model.cuda()``), arguments with parameters, results with
    returned values, and attributes of one object are followed. A parameter or a loop variable that gets
    several objects may be each of them, and they stay apart.
    """

    def __init__(self, modules: Iterable[Module], lookup: Lookup) -> None:
        self.nodes = Nodes(lookup)
        self.graph = self.nodes.graph
        self.expressions = Expressions(self.nodes)
        files = self._files = list(modules)
        flow = Flow(self.nodes, self.expressions)
        for module in files:
            flow.mention(module)
        for module in files:
            flow.read(module)
        state_methods(files, self.expressions)
        self.calls = Calls(self.nodes, self.expressions)
        self.calls.resolve(files)
        settle(self.nodes, self.calls)
        self._inside = Inside(self.nodes)

    @cached_property
    def calls_of_lambdas(self) -> dict[ast.Lambda, list[tuple[Module, ast.Call]]]:
        """The calls that may run each lambda."""
        found: dict[ast.Lambda, list[tuple[Module, ast.Call]]] = {}
        for (call, node), module in self.calls.lambdas.run.items():
            if any(target.function for target in self.calls.reached.get(call, ())):
                found.setdefault(node, []).append((module, call))
        for module, call, facts in self._called(_is_written):
            for fact in facts:
                if isinstance(fact, Written):
                    found.setdefault(fact.node, []).append((module, call))
        return found

    @cached_property
    def methods_called(self) -> dict[ast.Call, list[Method]]:
        """The methods of objects of libraries that calls may run which do not spell them, also through `functools.partial`."""
        found: dict[ast.Call, list[Method]] = {}
        for module, call, facts in self._called(may_run):
            for method in (method for fact in facts for method in self._methods(fact)):
                if not self._spells(module, call.func, method):
                    found.setdefault(call, []).append(method)
        return found

    def _methods(self, fact: Fact) -> Iterator[Method]:
        """Yield the methods that an object runs when it is called."""
        if isinstance(fact, Method):
            yield fact
        elif isinstance(fact, Held):
            held = self.facts(fact.module, fact.call.args[0])
            yield from (inner for inner in held if isinstance(inner, Method))
        elif isinstance(fact, Written) and (cleared := only_clears(fact.node)) is not None:
            yield Method(fact.module, cleared)

    def _spells(self, module: Module, func: ast.expr, method: Method) -> bool:
        """Tell whether what is called is the method of that object by its name."""
        if not isinstance(func, ast.Attribute) or func.attr != method.node.attr:
            return False
        return self.same(module, func.value, method.module, method.node.value)

    def _called(
        self, wanted: Callable[[Fact], bool]
    ) -> Iterator[tuple[Module, ast.Call, list[Fact]]]:
        """Yield the calls that run no function of the project, with what is known of what they call, where it may be wanted."""
        calls = self._unresolved
        for module, call in calls:
            self._node(module, call.func)  # the graph stays as it is while it is asked
        holding = self.graph.holding(wanted)
        near = self.onward(holding)
        for module, call in calls if holding else ():
            if near.reaches(module, call.func):
                yield module, call, self.facts(module, call.func)

    @cached_property
    def _unresolved(self) -> list[tuple[Module, ast.Call]]:
        return [
            (module, call)
            for module in self._files
            for call in module.tree.nodes(ast.Call)
            if not any(target.function for target in self.calls.reached.get(call, ()))
        ]

    def same(self, module: Module, a: Named, b_module: Module, b: Named) -> bool:
        """Tell whether two expressions may hold the same object."""
        one, other = self._node(module, a), self._node(b_module, b)
        return one is not None and other is not None and self.graph.same(one, other)

    def group(self, module: Module, expression: Named) -> int | None:
        """Return the class of names that hold the object of `expression`; None if it is no access path.

        Two expressions of one group hold the same object. Expressions of different groups may too, where
        one of them gets several objects: ask `same` or `groups`. Valid until new expressions are asked for.
        """
        node = self._node(module, expression)
        return None if node is None else self.graph.find(node)

    def groups(self, module: Module, expression: Named) -> frozenset[int]:
        """Return the groups of all objects that `expression` may hold, its own included."""
        node = self._node(module, expression)
        return frozenset() if node is None else self.graph.reach(node)[0]

    def sources(self, module: Module, expression: Named) -> frozenset[int]:
        """Return the groups of all objects that `expression` may hold, without those of names that are only handed them."""
        found = self.groups(module, expression)
        return frozenset(g for g in found if g < 0 or self.graph.reach(g)[0] <= {g})

    def lineage(self, module: Module, expression: ast.expr) -> frozenset[int]:
        """Return the groups of all objects that `expression` may hold, and of what makes them anew for each call."""
        node = self._node(module, expression)
        if node is None:
            return frozenset()
        held, made = self.graph.reach(node)
        return held | made

    def origins(self, groups: Iterable[int]) -> frozenset[int]:
        """Return some groups with those of what makes their objects anew for each call."""
        found = set(groups)
        for group in list(found):
            found |= self.graph.reach(group)[1] if group >= 0 else frozenset()
        return frozenset(found)

    def made_like(
        self, module: Module, made: ast.expr, origin_module: Module, origin: ast.expr
    ) -> bool:
        """Tell whether an expression holds a new object each time, of the kind that another one makes."""
        node, source = self._node(module, made), self._node(origin_module, origin)
        if node is None or source is None:
            return False
        return self.graph.find(source) in self.graph.reach(node)[1]

    def made_at(
        self, module: Module, made: ast.expr, origin_module: Module, origin: ast.expr
    ) -> frozenset[int]:
        """Return the groups of the new objects, of the kind that `origin` makes, that an expression holds or has as items."""
        node, source = self._node(module, made), self._node(origin_module, origin)
        graph = self.graph
        if node is None or source is None or graph.find(source) not in graph.reach(node)[1]:
            return frozenset()

        def parts(at: int) -> list[int]:
            items = (graph.find(graph.field(at, name)) for name in graph.items(at))
            return [
                item
                for item in items
                if graph.find(source) in frozenset().union(*graph.reach(item))
            ]

        held = closure([graph.find(node)], parts)
        return frozenset(at for at in held if not parts(at))

    def facts(self, module: Module, expression: ast.expr) -> list[Fact]:
        """Return what is known of the objects that `expression` may hold."""
        node = self._node(module, expression)
        return [] if node is None else self.graph.facts(node)

    def instance_classes(self, module: Module, expression: ast.expr) -> list[Class]:
        """Return the project classes of the objects that `expression` may hold."""
        facts = self.facts(module, expression)
        return list(dict.fromkeys(fact.cls for fact in facts if isinstance(fact, Instance)))

    def with_receivers(
        self, module: Module, expression: ast.expr
    ) -> tuple[frozenset[int], frozenset[int]]:
        """Return the groups of all objects that `expression` may hold, and those of ``self`` in their methods."""
        groups = self.groups(module, expression)
        facts = (fact for group in groups if group >= 0 for fact in self.graph.own_facts(group))
        held = {cls for f in facts if isinstance(f, Instance) for cls in f.cls.mro()}
        return groups, frozenset(self.graph.find(self.nodes.object(cls)) for cls in held)

    def may_give(self, module: Module, call: ast.Call, function: Function) -> bool:
        """Tell whether a call may give a function, or a class that has it for its constructor."""
        if call not in self.calls.own:
            return True
        for fact in self.facts(module, call):
            held = fact.function if isinstance(fact, Bound | Partial) else fact
            if held is function:
                return True
            if isinstance(held, Class) and held.method("__init__") is function:
                return True
        return False

    def made_by(self, module: Module, expression: ast.expr) -> list[str]:
        """Return the dotted names of the callees outside the project that made the object."""
        return [fact.name for fact in self.facts(module, expression) if isinstance(fact, Made)]

    def is_optimizer(self, module: Module, expression: ast.expr) -> bool:
        """Tell whether a package of optimizers, outside of the project, made the object of an expression."""
        facts = self.facts(module, expression)
        return any(isinstance(fact, Made) and fact.is_optimizer for fact in facts)

    def inside(self, module: Module, expression: ast.expr) -> frozenset[int]:
        """Return the groups of what the object of `expression` holds in attributes and items, some levels down."""
        node = self._node(module, expression)
        return frozenset() if node is None else frozenset(self._inside.of(node))

    def kept_by(self, module: Module, expression: ast.expr) -> list[tuple[Module, ast.Call]]:
        """Return the calls of ``functools.partial`` that may have made the object of `expression`."""
        facts = self.facts(module, expression)
        return [(fact.module, fact.call) for fact in facts if isinstance(fact, Held)]

    def written(self, module: Module, expression: ast.expr) -> list[tuple[Module, ast.Lambda]]:
        """Return the lambdas that `expression` may be."""
        facts = self.facts(module, expression)
        return [(fact.module, fact.node) for fact in facts if isinstance(fact, Written)]

    def may_be_apex(self, module: Module, expression: ast.expr) -> bool:
        """Tell whether Apex, or something of it, can flow to an expression: quickly, and never wrongly no."""
        node = self._node(module, expression)
        return node is not None and self._apex.reaches(node)

    def onward(self, groups: Iterable[int], *, items: bool = False) -> Onward:
        """Return what tells, quickly, whether an object of some groups can flow to an expression.

        With `items`, an item of a container counts as that, too.
        """
        return onward(self.graph, groups, self._node, self._ways, items=items)

    def near(self, groups: Iterable[int], *, held: bool = False) -> Near:
        """Return what tells the same of all that is read from now on; a container counts as any of its items.

        With `held`, so does all that may hold one of the objects: every object of a class in sight.
        """
        wanted, up = (_is_object, self.graph.holders) if held else (_is_none, self.graph.containers)
        found = Spread(self.graph, self._ways, wanted, groups, up)
        self.graph.watched.insert(0, found)

        def reaches(module: Module, expression: Named) -> bool:
            node = self._node(module, expression)
            return node is not None and found.reaches(node)

        return reaches

    @cached_property
    def _ways(self) -> Ways:
        """Where objects flow in the graph."""
        found = Ways(self.graph)
        self.graph.watched.append(found)
        return found

    @cached_property
    def _apex(self) -> Spread:
        """Where Apex, or something of it, can flow to; all that may hold it is read."""
        for module in self._files:
            for part in module.tree.nodes(ast.Name, ast.Attribute):
                self.expressions.node(module, part)
        found = Spread(self.graph, self._ways, _is_apex)
        self.graph.watched.insert(0, found)
        return found

    def _node(self, module: Module, expression: Named) -> int | None:
        if isinstance(expression, ast.arg):
            return self.nodes.variable(module, module.scopes.scope_of(expression), expression.arg)
        return self.expressions.node(module, expression)


def _is_written(fact: Fact) -> bool:
    return isinstance(fact, Written)


def _is_object(fact: Fact) -> bool:
    return isinstance(fact, Instance)


def _is_none(_: Fact) -> bool:
    return False


def _is_apex(fact: Fact) -> bool:
    return isinstance(fact, str) and fact.partition(".")[0] == "apex"
