"""What is in the containers of each object: what calls on that object give to be put there, and on any that may be it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.facts.paths import is_super
from amp_migrate.modules.binding import bind
from amp_migrate.modules.model import CallSite, Class, Function, Module
from amp_migrate.values.apart.makers import Makers
from amp_migrate.values.apart.puts import Put, Puts, parameter, receiver_class
from amp_migrate.values.links.upstream import APPENDED
from amp_migrate.values.nodes import Nodes, enclosing_class
from amp_migrate.values.objects import Made, MadeAt

Passed = dict[Put, list[tuple[CallSite, int]]]
Decorated = dict[Put, list[tuple[Module, ast.expr, int]]]


class Contents:
    """The nodes of containers of single objects, and what flows into each.

    `passed` gives what calls pass to parameters.
    """

    def __init__(self, nodes: Nodes, passed: Passed) -> None:
        self._nodes = nodes
        self._graph = nodes.graph
        self._passed = passed
        self._decorated: Decorated = {}
        self._puts: dict[tuple[Class, str], list[Put]] = {}
        self._held: dict[tuple[MadeAt, str], int] = {}
        self._makers = Makers(nodes, (), ())

    def read(self, modules: Sequence[Module]) -> None:
        """Find the objects of which several have such a container, before anything is said of these."""
        puts = Puts(self._nodes.lookup, modules)
        own = list(dict.fromkeys(puts.own()))
        classes = {below for cls, _ in own for below in (cls, *cls.subclasses())}
        self._makers = Makers(self._nodes, modules, classes)
        for cls, name in own:
            made = [at for at in self._makers.made.values() if cls in at.cls.mro()]
            if len(made) > 1 and (found := puts.into(cls, name)):
                self._puts[cls, name] = found
                for at in made:
                    self._held.setdefault((at, name), self._graph.new())

    def made(self, module: Module, node: ast.expr) -> MadeAt | None:
        """Return what made the object of an expression, where its containers are known apart from those of others."""
        return self._makers.of(module, node) if self._held else None

    def held(self, made: MadeAt, name: str) -> int | None:
        """Return the node of a container of one object; None where it is not known apart."""
        return self._held.get((made, name))

    def give(self, decorated: Decorated) -> None:
        """Let what calls, and what decorators get, give by now flow into the containers of the objects that may get it."""
        self._decorated = decorated
        for (cls, name), puts in self._puts.items():
            held = {
                at: node
                for (at, own), node in self._held.items()
                if own == name and cls in at.cls.mro()
            }
            self._give(cls, name, puts, held)

    def _give(self, cls: Class, name: str, puts: Sequence[Put], held: dict[MadeAt, int]) -> None:
        graph = self._graph
        told: set[int] = set()
        queue = list(puts)
        for put in queue:
            told.add(graph.find(self._nodes.parameter(*put)))
            for module, callee, given, argument in self._given(put):
                told.add(graph.find(given))
                whose = self._whose(module, callee, put[0])
                inner = None
                if isinstance(whose, Class) and whose in {*cls.mro(), cls, *cls.subclasses()}:
                    inner = parameter(module, argument) if argument is not None else None
                if inner is not None:
                    queue += [inner] if inner not in queue else []
                elif isinstance(whose, MadeAt) and whose in held:
                    graph.flow(given, graph.field(held[whose], APPENDED))
                else:
                    self._to_all(given, held)
        for put in queue:
            self._rest(self._nodes.parameter(*put), told, held)
        whole = self._nodes.attribute(cls, name)
        fields = graph.fields[graph.find(whole)]
        inside = [node for item, node in fields.items() if item[:1] == "["]
        plain = all(isinstance(fact, Made) for fact in graph.own_facts(whole))
        if (
            not plain
            or graph.feeding(graph.find(whole))
            or not all(self._is_told(node, told) for node in inside)
        ):
            for node in held.values():
                graph.flow(whole, node)

    def _rest(self, node: int, told: set[int], held: dict[MadeAt, int]) -> None:
        """Let a parameter flow into all containers that gets more than calls were seen to give."""
        if not self._is_told(node, told):
            self._to_all(node, held)

    def _is_told(self, node: int, told: set[int]) -> bool:
        root = self._graph.find(node)
        return told.issuperset(self._graph.feeding(root)) and not self._graph.stated[root]

    def _to_all(self, node: int, held: dict[MadeAt, int]) -> None:
        for container in held.values():
            self._graph.flow(node, self._graph.field(container, APPENDED))

    def _given(self, put: Put) -> Iterator[tuple[Module, ast.expr | None, int, ast.expr | None]]:
        """Yield what a parameter is given, with what is called there, and the argument as it is written."""
        function, name = put
        for site, node in list(self._passed.get(put, ())):
            plain = not site.partial and not site.constructor
            argument = bind(site, function).given.get(name) if plain else None
            callee = site.call.func if argument is not None else None
            yield site.function.module, callee, node, argument
        for module, decorator, node in list(self._decorated.get(put, ())):
            yield module, decorator, node, None

    def _whose(
        self, module: Module, callee: ast.expr | None, function: Function
    ) -> MadeAt | Class | None:
        """Return the object whose method a call runs, or the class where it is the one whose method calls; None if unknown."""
        method = function.method
        if function is not method:
            # A function in a method belongs to the same object: the method calls it, or gives it.
            if isinstance(callee, ast.Name) and _is_local(module, callee, function):
                return method.cls
            if function.parent is not method or not isinstance(callee, ast.Call):
                return None
            callee = callee.func
        if not isinstance(callee, ast.Attribute) or callee.attr != method.name:
            return None
        if is_super(callee.value):
            return enclosing_class(module, callee)
        made = self._makers.of(module, callee.value)
        if made is not None:
            return made if made.cls.method(method.name) is method else None
        return receiver_class(module, callee.value)


def _is_local(module: Module, node: ast.Name, function: Function) -> bool:
    """Tell whether a name is that by which a function is defined in the one around it."""
    bound = module.scopes.bound(node)
    return module is function.module and bound == [function.node]
