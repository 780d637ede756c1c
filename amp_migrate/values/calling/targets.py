"""Which functions and classes of the project a call may reach."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from amp_migrate.facts.paths import is_super
from amp_migrate.modules.binding import fits
from amp_migrate.modules.lookup import Lookup
from amp_migrate.modules.model import CallSite, Class, Function, Module
from amp_migrate.values.abstract import concrete
from amp_migrate.values.apart.contents import Contents
from amp_migrate.values.expressions import Expressions
from amp_migrate.values.links.graph import MIDDLE
from amp_migrate.values.links.upstream import EACH
from amp_migrate.values.nodes import Nodes, enclosing_class
from amp_migrate.values.objects import Bound, Fact, Instance, Partial, Receiver

# Methods that objects of every kind have: their name says nothing about the class.
COMMON = frozenset(dir(list) + dir(dict) + dir(str) + dir(set)) | {
    "backward", "close", "cuda", "eval", "fit", "flush", "forward", "info", "load", "load_state_dict", "log",
    "mean", "open", "parameters", "read", "reset", "run", "save", "start", "state_dict", "step", "sum", "to",
    "train", "write", "zero_grad",
}  # fmt: skip
_TAKING = frozenset({"pop", "popleft"})


@dataclass(frozen=True, slots=True)
class Target:
    """What a call reaches: a function, or a class with the ``__init__`` it has, if any.

    `taken` counts the positional parameters that a ``functools.partial`` object has given already; `receiver`
    is the class, or the highest one, of the object that a method is called on, or what made that.
    """

    function: Function | None
    bound: bool = False
    cls: Class | None = None
    taken: int | None = None
    receiver: Receiver | None = None


class Targets:
    """Resolves callees, by definition where names say it, else by the objects that may be there."""

    def __init__(self, nodes: Nodes, expressions: Expressions, contents: Contents) -> None:
        self.nodes = nodes
        self.expressions = expressions
        self.lookup = nodes.lookup
        self._contents = contents

    def of(self, module: Module, func: ast.expr) -> list[Target]:
        """Return what calling `func` reaches; nothing where it is unknown or outside the project."""
        if isinstance(func, ast.Attribute) and is_super(func.value):
            return self._super(module, func)
        found = list(self.defined(module, func))
        if not found and isinstance(func, ast.Attribute):
            found = list(self._through_object(module, func))
        if not found:
            taken = self._taken_off(module, func)
            node = self.expressions.node(module, func) if taken is None else taken
            found = (
                list(self._held(self.nodes.graph.facts(node, MIDDLE))) if node is not None else []
            )
        return [target for target in dict.fromkeys(found) if _may_take(module, func, target)]

    def _taken_off(self, module: Module, func: ast.expr) -> int | None:
        """Return the node of any item of a collection that one is taken off to be called: ``acts.pop()()``."""
        taken = func.func if isinstance(func, ast.Call) and not func.args else None
        if not isinstance(taken, ast.Attribute) or taken.attr not in _TAKING:
            return None
        base = self.expressions.node(module, taken.value)
        return None if base is None else self.nodes.graph.field(base, EACH)

    def forwards(self, module: Module, func: ast.expr) -> list[Target]:
        """Return the ``forward`` methods that calling a module object ends in."""
        node = self.expressions.node(module, func)
        facts = self.nodes.graph.facts(node, MIDDLE) if node is not None else []
        instances = [fact for fact in facts if isinstance(fact, Instance)]
        methods = [
            method for item in instances for method in reachable(self.lookup, item, "forward")
        ]
        return [Target(method, bound=True) for method in dict.fromkeys(methods)]

    def defined(self, module: Module, func: ast.expr) -> Iterator[Target]:
        """Yield what `func` reaches by imports and definitions alone."""
        base = func.value if isinstance(func, ast.Attribute) else None
        of_base = self.lookup.expression(module, base) if base is not None else ()
        through = [meaning for meaning in of_base if isinstance(meaning, Class)]
        for meaning in self.lookup.expression(module, func):
            if isinstance(meaning, Function):
                bound = bool(through) and meaning.is_class
                yield Target(meaning, bound, receiver=through[0] if bound else None)
            elif isinstance(meaning, Class):
                yield constructor(meaning)

    def _through_object(self, module: Module, func: ast.Attribute) -> Iterator[Target]:
        base = self.expressions.node(module, func.value)
        for fact in self.nodes.graph.facts(base, MIDDLE) if base is not None else ():
            if isinstance(fact, Instance):
                made = self._contents.made(module, func.value)
                own = made if made is not None and made.cls is fact.cls else fact.cls
                for method in reachable(self.lookup, fact, func.attr):
                    if not method.is_property:
                        yield Target(method, bound=not method.is_static, receiver=own)
            elif isinstance(fact, Class):
                method_or_none = fact.method(func.attr)
                if method_or_none is not None:
                    yield Target(method_or_none, bound=method_or_none.is_class)
            elif isinstance(fact, Module):
                yield from self._held(self.lookup.member(fact, func.attr))

    def _held(self, facts: Iterable[Fact]) -> Iterator[Target]:
        for fact in facts:
            if isinstance(fact, Function):
                yield Target(fact)
            elif isinstance(fact, Bound):
                yield Target(fact.function, bound=True, receiver=fact.receiver)
            elif isinstance(fact, Partial):
                yield Target(fact.function, taken=fact.taken)
            elif isinstance(fact, Class):
                yield constructor(fact)
            elif isinstance(fact, Instance):
                for method in reachable(self.lookup, fact, "__call__"):
                    yield Target(method, bound=True)

    def _super(self, module: Module, func: ast.Attribute) -> list[Target]:
        cls = enclosing_class(module, func)
        if cls is None:
            return []
        found: dict[Function, None] = {}
        for owner in (cls, *cls.subclasses()):
            order = owner.mro()
            for base in order[order.index(cls) + 1 :] if cls in order else ():
                if func.attr in base.methods:
                    found[base.methods[func.attr]] = None
                    break
        return [Target(method, bound=not method.is_static, receiver=cls) for method in found]


def _may_take(module: Module, func: ast.expr, target: Target) -> bool:
    """Tell whether what is called may be a method of an object: none has it where the call raises for what it is given."""
    call, method = module.tree.parents.get(func), target.function
    if (
        not isinstance(call, ast.Call)
        or call.func is not func
        or not isinstance(func, ast.Attribute)
    ):
        return True
    if method is None or method.node is None or not target.bound or target.cls is not None:
        return True
    site = CallSite(module.functions[module.tree.module], call, bound=True)
    return bool(method.node.decorator_list) or fits(site, method)


def constructor(cls: Class) -> Target:
    """Return the target of calling a class."""
    return Target(cls.method("__init__"), bound=True, cls=cls)


def reachable(lookup: Lookup, instance: Instance, name: str) -> list[Function]:
    """Return the methods that ``object.name`` may run, for an object of a class or of its subclasses."""
    classes = [instance.cls] if instance.exact else [instance.cls, *instance.cls.subclasses()]
    found = (cls.method(name) for cls in lookup.made(classes))
    return concrete(method for method in found if method is not None)
