"""What a method takes out of the object that it is called on: another object for each class that inherits it."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass

from amp_migrate.facts.scopes import assigned
from amp_migrate.modules.model import Class, Function
from amp_migrate.values.apart.contents import Contents
from amp_migrate.values.links.graph import MIDDLE
from amp_migrate.values.links.upstream import EACH
from amp_migrate.values.nodes import Nodes, function_of
from amp_migrate.values.objects import Fact, Receiver

_TAKING = {"get", "pop", "setdefault"}
_PLAIN = frozenset(dir(dict) + dir(str) + dir(list) + dir(builtins))


@dataclass(frozen=True, slots=True)
class Taken:
    """An item of an attribute of the receiver, or, with `call`, what calling such an item gives."""

    attribute: str
    call: ast.Call | None = None


@dataclass(frozen=True, slots=True)
class Inner:
    """A call inside of a method that calls an item of the receiver, for one call of the method and its result."""

    function: Function
    call: ast.Call
    held: int
    outer: ast.Call
    result: int


class Receivers:
    """Tells results of one method apart by the object that it is called on, or its class: ``super().build(options)``."""

    def __init__(self, nodes: Nodes, contents: Contents) -> None:
        self._nodes = nodes
        self._contents = contents
        self._graph = nodes.graph
        self._known: dict[Function, tuple[Taken, ...]] = {}
        self._plain: dict[Function, bool] = {}
        self._found: dict[Inner, set[Fact]] = {}
        self.own: set[ast.Call] = set()
        """The calls that give what the very object holds that their method is called on."""

    def link(self, function: Function, receiver: Receiver, call: ast.Call, result: int) -> bool:
        """Let the result of a call be what the receiver holds; False where it is the same for every receiver."""
        taken = self._taken(function)
        if not any(self._differs(item, function, receiver) for item in taken):
            return False
        if not isinstance(receiver, Class):
            self.own.add(call)
        for item in taken:
            held = self._graph.field(self._attribute(receiver, item.attribute), EACH)
            if item.call is None:
                self._graph.flow(held, result)
            else:
                inner = Inner(function, item.call, held, call, result)
                self._found.setdefault(inner, set())
        return True

    def new(self) -> list[tuple[Inner, Fact]]:
        """Return what was found since to be called for a receiver."""
        found = []
        for inner, known in self._found.items():
            for fact in self._graph.facts(inner.held, MIDDLE):
                if fact not in known:
                    known.add(fact)
                    found.append((inner, fact))
        return found

    def is_plain(self, function: Function) -> bool:
        """Tell whether a method does nothing but take items of its receiver and call them."""
        if function not in self._plain:
            self._plain[function] = False
            calls = {item.call for item in self._taken(function)}
            module = function.module
            self._plain[function] = all(
                node in calls or self._is_harmless(function, node)
                for node in module.tree.nodes(ast.Call)
                if function_of(module, node) is function
            )
        return self._plain[function]

    def _is_harmless(self, function: Function, call: ast.Call) -> bool:
        own = self._own(function, call)
        if own is not None:
            return self.is_plain(own)
        meanings = self._nodes.lookup.expression(function.module, call.func)
        if meanings:
            return all(isinstance(item, str) and not _computes(item) for item in meanings)
        if isinstance(call.func, ast.Name):
            return function.module.scopes.builtin(call.func) in _PLAIN
        return isinstance(call.func, ast.Attribute) and call.func.attr in _PLAIN

    def _attribute(self, receiver: Receiver, name: str) -> int:
        if isinstance(receiver, Class):
            return self._nodes.attribute(receiver, name)
        own = self._contents.held(receiver, name)
        return self._nodes.attribute(receiver.cls, name) if own is None else own

    def _differs(self, item: Taken, function: Function, receiver: Receiver) -> bool:
        assert function.cls is not None
        own = self._attribute(receiver, item.attribute)
        return self._graph.find(own) != self._graph.find(
            self._nodes.attribute(function.cls, item.attribute)
        )

    def _taken(self, function: Function) -> tuple[Taken, ...]:
        """Return all that a method may return; nothing where a part of it is something else."""
        if function not in self._known:
            self._known[function] = ()
            found: list[Taken] = []
            if function.takes_receiver and not function.is_property:
                for value in _returned(function):
                    part = self._read(function, value, frozenset())
                    if part is None:
                        return ()
                    found += part
            self._known[function] = tuple(dict.fromkeys(found))
        return self._known[function]

    def _read(
        self, function: Function, value: ast.expr, around: frozenset[ast.expr]
    ) -> list[Taken] | None:
        """Return what a value is; None where that is not known, or it is made of what it is `around`."""
        if value in around:
            return None
        around |= {value}
        if isinstance(value, ast.Constant):
            return []
        if isinstance(value, ast.Name):
            return self._local(function, value, around)
        if (attribute := _item(function, value)) is not None:
            return [Taken(attribute)]
        if isinstance(value, ast.Call):
            called = self._own(function, value)
            if called is not None:
                return self._method(called, around)
            inner = self._read(function, value.func, around)
            if inner and all(item.call is None for item in inner):
                return [Taken(item.attribute, value) for item in inner]
        return None

    def _local(
        self, function: Function, name: ast.Name, around: frozenset[ast.expr]
    ) -> list[Taken] | None:
        module = function.module
        if module.scopes.owner(name) is not function.scope:
            return None
        found: list[Taken] = []
        for binding in module.scopes.bindings(function.scope, name.id):
            value = assigned(module.tree, binding)
            part = None if value is None else self._read(function, value, around)
            if part is None:
                return None
            found += part
        return found

    def _own(self, function: Function, call: ast.Call) -> Function | None:
        """Return the method of the receiver's class that a call of ``self.method()`` reaches."""
        func = call.func
        if not isinstance(func, ast.Attribute) or not _is_receiver(function, func.value):
            return None
        cls = function.cls
        if cls is None or any(func.attr in below.methods for below in cls.subclasses()):
            return None  # another one for each class
        return cls.method(func.attr)

    def _method(self, called: Function, around: frozenset[ast.expr]) -> list[Taken] | None:
        found: list[Taken] = []
        for value in _returned(called) if called.takes_receiver else ():
            part = self._read(called, value, around)
            if part is None:
                return None
            found += part
        return found or None


def _computes(name: str) -> bool:
    """Tell whether a callee outside the project, by its dotted name, may do more than handle options."""
    return name.partition(".")[0] in {"torch", "apex"}


def _returned(function: Function) -> list[ast.expr]:
    """Return the values that a function returns."""
    module = function.module
    return [
        node.value
        for node in module.tree.nodes(ast.Return)
        if node.value is not None and function_of(module, node) is function
    ]


def _item(function: Function, node: ast.expr) -> str | None:
    """Return the attribute of the receiver that an expression takes an item of."""
    base: ast.expr | None = None
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
        base = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        base = node.func.value if node.func.attr in _TAKING and node.args else None
    if isinstance(base, ast.Attribute) and _is_receiver(function, base.value):
        return base.attr
    return None


def _is_receiver(function: Function, node: ast.expr) -> bool:
    module = function.module
    if not isinstance(node, ast.Name) or not function.is_receiver(node):
        return False
    bindings = module.scopes.bindings(function.scope, node.id)
    return len(bindings) == 1 and module.scopes.owner(node) is function.scope
