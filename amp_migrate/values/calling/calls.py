"""The call graph: every call of the project with the functions it may reach."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from amp_migrate.facts.paths import all_given, spreads
from amp_migrate.modules.binding import fits
from amp_migrate.modules.meeting import Meeting
from amp_migrate.modules.model import CallSite, Class, Function, Module
from amp_migrate.values.abstract import concrete, topmost
from amp_migrate.values.apart.contents import Contents
from amp_migrate.values.calling.decorators import Decorators
from amp_migrate.values.calling.entered import Entered
from amp_migrate.values.calling.lambdas import Lambdas, maps_of
from amp_migrate.values.calling.looked_up import LookedUp
from amp_migrate.values.calling.passing import LAUNCHERS, Passing, launched
from amp_migrate.values.calling.results import Results
from amp_migrate.values.calling.spoken import Spoken
from amp_migrate.values.calling.targets import COMMON, Target, Targets
from amp_migrate.values.calling.tools import Store, Tools, kept_names, stores_of
from amp_migrate.values.expressions import Expressions
from amp_migrate.values.links.graph import MIDDLE
from amp_migrate.values.links.imported import Imported
from amp_migrate.values.nodes import Nodes, function_of
from amp_migrate.values.objects import Made, Partial

_ROUNDS = 8


class Calls:
    """Resolves calls and lets arguments flow into parameters, until nothing new is reached."""

    def __init__(self, nodes: Nodes, expressions: Expressions) -> None:
        self.nodes = nodes
        self.graph = nodes.graph
        self.expressions = expressions
        self.sites: dict[Function, list[CallSite]] = {}
        self.completions: dict[Function, list[tuple[CallSite, int]]] = {}
        self.reached: dict[ast.Call, list[Target]] = {}
        self._passing = Passing(nodes, expressions)
        self.passed = self._passing.passed
        self._contents = Contents(nodes, self.passed)
        self.targets = Targets(nodes, expressions, self._contents)
        self.lambdas = Lambdas(nodes, expressions)
        self.spoken = Spoken(nodes.lookup.modules)
        self._looked_up = LookedUp(nodes, expressions, self._passing, self.spoken)
        self._entered = Entered(nodes, expressions)
        self._decorators = Decorators(nodes, expressions, self.targets)
        self._tools = Tools(nodes, expressions, self._passing)
        self._results = Results(nodes, expressions, self._passing, self._contents)
        self.results, self.own = self._results.given, self._results.own
        self.unclear: dict[Function, list[tuple[Module, ast.Call]]] = {}
        self._linked: set[tuple[ast.Call, Target]] = set()
        self._methods: dict[str, list[Function]] = {}
        self._stored: set[str] = set()
        self._initializers: list[tuple[Module, ast.Call]] = []
        self._partials: list[tuple[Module, ast.Call]] = []

    def resolve(self, modules: Sequence[Module]) -> None:
        """Resolve every call of `modules`."""
        for module in modules:
            for function in module.functions.values():
                if function.cls is not None:
                    self._methods.setdefault(function.name, []).append(function)
            self._stored.update(kept_names(module))
        self._contents.read(modules)
        self._looked_up.give(modules)
        self.meeting = Meeting(modules, self.nodes.lookup)
        self.imported = Imported(self.nodes, self.expressions.node, self.meeting)
        self._stored |= self.imported.give(modules)
        pending = [pair for module in modules for pair in self._static(module)]
        stores = [store for module in modules for store in stores_of(module)]
        maps = [pair for module in modules for pair in maps_of(module)]
        called = frozenset(self.sites)
        self._rounds(modules, pending, stores, maps, called)
        version, untold = self.graph.version, self._looked_up.untold(modules, self.sites)
        for module, call, method in untold:
            self._link(module, call, Target(method, bound=True))
        self.expressions.unwrapped.tell(for_good=True)
        if untold or self.graph.version != version:
            self._rounds(modules, pending, stores, maps, called)
        self._unknown([pair for pair in pending if pair[1] not in self.reached])
        self._contents.give(self._decorators.given)
        for module, call in self._initializers:
            self._initialize(module, call)

    def _rounds(
        self,
        modules: Sequence[Module],
        pending: Sequence[tuple[Module, ast.Call]],
        stores: list[Store],
        maps: Sequence[tuple[Module, ast.Call]],
        called: frozenset[Function],
    ) -> None:
        """Let objects and what is called reach each other, until nothing new is reached."""
        for _ in range(_ROUNDS):
            version = self.graph.version
            self.expressions.unwrapped.tell()
            self._by_objects(pending)
            self._results.resolve(self.reached)
            self._tools.store(stores)
            self._entered.link(modules)
            self.lambdas.map(maps)
            self._decorators.link(modules, called)
            self._contents.give(self._decorators.given)
            if self.graph.version == version:
                break

    def _by_objects(self, pending: Sequence[tuple[Module, ast.Call]]) -> None:
        """Link calls with what the objects that may be there have."""
        for module, call in self._partials:
            for target in self.targets.of(module, call.args[0]):
                self._link(module, call, target, partial=True)
        # All answers first: linking changes the graph, and what was read of it so far is void.
        found = [(m, call, self.targets.of(m, call.func)) for m, call in pending]
        forwards = [
            (m, call, self.targets.forwards(m, call.func))
            for m, call, targets in found
            if not targets
        ]
        for module, call, targets in found:
            for target in targets:
                self._link(module, call, target)
        for module, call, targets in forwards:
            if targets:
                self._forward(module, call, targets)
        for module, call, targets in forwards:
            for target in filter(self._tools.takes_apex, targets):
                self._through_module(module, call, target)
        for module, call, _ in found:
            self.lambdas.link(module, call)
        for module, call, targets in found:
            for target in self._looked_up.link(module, call) if not targets else ():
                self._link(module, call, target)
        for module, call in pending:
            self._results.outside(module, call)

    def _unknown(self, calls: Sequence[tuple[Module, ast.Call]]) -> None:
        """Link what no object tells: by the name of the method, or as a ``forward`` that is given Apex."""
        for module, call in calls:
            self._by_name(module, call)
        of_modules = map(Target, self._methods.get("forward", []))
        taking = [target for target in of_modules if self._tools.takes_apex(target)]
        for module, call in calls if taking else ():
            self._by_shape(module, call, taking)

    def _static(self, module: Module) -> Iterator[tuple[Module, ast.Call]]:
        """Link what definitions alone say; yield the calls that need to know which object is there."""
        for node in module.tree.parents:
            if not isinstance(node, ast.Call):
                continue
            outside = False
            for meaning in self.nodes.lookup.expression(module, node.func):
                if isinstance(meaning, str):
                    outside = True
                    self._external(module, node, meaning)
            for target in (found := list(self.targets.defined(module, node.func))):
                self._link(module, node, target)
            if found or outside:
                continue
            if isinstance(node.func, ast.Attribute) and node.func.attr == "initialize":
                self._initializers.append((module, node))
            if self._may_reach(module, node):
                yield module, node

    def _forward(self, module: Module, call: ast.Call, targets: list[Target]) -> None:
        """Let what is no tensor reach the ``forward`` of the module object that is called."""
        given = all_given(call)
        nodes = [self.expressions.node(module, item) for item in given]
        if not any(node is not None and self._tools.holds_tool(node) for node in nodes):
            return
        for target in targets:
            if (call, target) not in self._linked:
                self._linked.add((call, target))
                self._passing.arguments(
                    module, CallSite(function_of(module, call), call, bound=True), target
                )

    def _through_module(self, module: Module, call: ast.Call, target: Target) -> None:
        """Note that a call of a module object ends in its ``forward``, as any other call of a function."""
        site = CallSite(function_of(module, call), call, target.bound)
        if target.function is None or not fits(site, target.function):
            return
        if target not in self.reached.setdefault(call, []):
            self.reached[call].append(target)
            self._note(site, target)
            result = self.expressions.node(module, call)
            if result is not None:
                self._results.give(module, call, target, result)

    def _initialize(self, module: Module, call: ast.Call) -> None:
        """Read ``args.amp.initialize(...)`` as the call of Apex that it is."""
        assert isinstance(call.func, ast.Attribute)
        amp = self.expressions.node(module, call.func.value)
        if amp is None or "apex.amp" not in self.graph.facts(amp):
            return
        result = self.expressions.node(module, call)
        initialized = self.expressions.initialized(module, call)
        if result is not None and initialized is not None:
            self.graph.merge(result, initialized)

    def _may_reach(self, module: Module, call: ast.Call) -> bool:
        func = call.func
        if isinstance(func, ast.Name):
            return module.scopes.owner(func) is not None
        if isinstance(func, ast.Attribute):
            return func.attr in self._methods or func.attr in self._stored
        return True

    def _external(self, module: Module, call: ast.Call, name: str) -> None:
        last = name.rpartition(".")[2]
        if name in {"functools.partial", "partial"} and call.args:
            self._partials.append((module, call))
        elif last in LAUNCHERS:
            callee = launched(call)
            self._passing.launch(module, call, self.targets.of(module, callee) if callee else [])

    def _by_name(self, module: Module, call: ast.Call) -> None:
        """Link a method call on an unknown object when only one family of classes that it may be of has such a method."""
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr in COMMON:
            return
        known = self._methods.get(func.attr, ())
        methods = [method for method in known if self.meeting.may(module, method.module)]
        base = self.expressions.node(module, func.value)
        if not methods or base is None or self.graph.facts(base, MIDDLE):
            return
        roots = {topmost(method) for method in methods}
        site = CallSite(function_of(module, call), call, bound=True)
        if len(roots) > 1 or not all(fits(site, method) for method in methods):
            for method in methods:
                if fits(site, method):
                    self.unclear.setdefault(method, []).append((module, call))
            return
        for method in concrete(methods):
            if not method.is_property:
                self._link(module, call, Target(method, bound=not method.is_static))

    def _by_shape(self, module: Module, call: ast.Call, forwards: list[Target]) -> None:
        """Note that an unknown object is called as one of some ``forward``, which must be given Apex, would be."""
        if isinstance(call.func, ast.Attribute) and call.func.attr not in self._stored | {
            "forward"
        }:
            return
        base = self.expressions.node(module, call.func)
        facts = self.graph.facts(base, MIDDLE) if base is not None else []
        if base is None or not all(isinstance(fact, Made) for fact in facts):
            return
        site = CallSite(function_of(module, call), call, bound=True)
        for target in forwards:
            if target.function is not None and fits(site, target.function):
                plain = not spreads(call) and self._tools.takes_apex(target, within=False)
                if plain or self._tools.holds_apex(module, call):
                    self.unclear.setdefault(target.function, []).append((module, call))

    def _link(self, module: Module, call: ast.Call, target: Target, partial: bool = False) -> None:
        result = self.expressions.node(module, call)
        function = target.function
        if not partial and function is not None and target.cls is None and result is not None:
            self._results.give(module, call, target, result)
        target = replace(target, receiver=None)
        if (call, target) in self._linked:
            return
        self._linked.add((call, target))
        if partial and function is not None and result is not None:
            taken = target.bound + sum(not isinstance(a, ast.Starred) for a in call.args[1:])
            self.graph.state(result, Partial(function, taken))
        if not partial:
            self.reached.setdefault(call, []).append(target)
        if target.cls is not None and not partial:
            self._results.construct(module, call, target.cls, result)
        if function is None:
            if target.cls is not None and not partial:
                self._finish(module, call, target.cls)
            return
        site = CallSite(
            function_of(module, call), call, target.bound, partial, target.cls is not None
        )
        self._passing.arguments(module, site, target)
        self._note(site, target)

    def _finish(self, module: Module, call: ast.Call, cls: Class) -> None:
        """Let a call of a dataclass run what finishes its object; the arguments are fields, none of them reach it."""
        method = cls.method("__post_init__")
        if method is not None and method.takes_receiver:
            target = Target(method, bound=True)
            self.reached[call].append(target)
            self._note(CallSite(function_of(module, call), call, bound=True), target)

    def _note(self, site: CallSite, target: Target) -> None:
        assert target.function is not None
        if target.taken is None:
            # The arguments of a call of a partial object are threaded through ``partial(...)``.
            self.sites.setdefault(target.function, []).append(site)
        else:
            self.completions.setdefault(target.function, []).append((site, target.taken))
