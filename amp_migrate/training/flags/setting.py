"""What a test reads in the end, and what may set that: assignments, ``setattr``, and methods of collections."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.closure import spread
from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import called_on, looked_up, same, tail, walk
from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.project.relatives import apart, properties

Place = tuple[Module, ast.AST]
_SETS = frozenset({"delattr", "setattr"})
_CHANGES = frozenset(
    {
        *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft"),
        *("remove", "reverse", "setdefault", "sort", "update", "__delitem__", "__setitem__"),
    }
)  # fmt: skip
_EMPTIES = frozenset({"clear", "popitem"})
_ATTRIBUTES = frozenset({"__dict__", "vars"})


def read(project: Project, function: Function, node: ast.AST) -> Iterator[tuple[Function, ast.AST]]:
    """Yield an expression of a function, and the bodies of the properties and methods that it asks, at any distance."""

    def inside(one: tuple[Function, ast.AST]) -> Iterator[tuple[Function, ast.AST]]:
        for part in walk(one[1]):
            if isinstance(part, ast.Attribute):
                for method in properties(project, one[0], ast.unparse(part)):
                    yield method, method.scope
            elif isinstance(part, ast.Call):
                held = [n for n in one[0].calls if same(n, part)][:1]
                for callee in (f for n in held for f in project.callees(n)):
                    yield callee, callee.scope

    yield from spread([(function, node)], inside)


def setters(
    project: Project, function: Function, node: ast.AST, *, making: bool = False
) -> Iterator[Place]:
    """Yield what may set an attribute that an expression of a function reads, or what is in a collection that it asks.

    What constructors set on the objects that they make is among it only with `making`.
    """
    known = _Setters.of(project)
    for part in walk(node):
        if isinstance(part, ast.Attribute):
            for module, setter, owner in known.of_attribute(function, part):
                if making or owner is None or not is_made(module, owner):
                    yield module, setter
        if (collection := _asked(part)) is not None:
            yield from known.of_items(function, collection, part)


def _asked(node: ast.AST) -> ast.expr | None:
    """Return the collection of which something is asked: an item, or whether there is one."""
    if isinstance(node, ast.Subscript):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr == "get" else None
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        return node.comparators[0]
    return None


class _Setters:
    """The calls and items of a project that may set something, by the expression whose inside they change."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._spelt: dict[tuple[Function, ast.expr], list[ast.expr]] = {}
        self._named: list[tuple[Module, ast.Call]] = []
        self._changing: list[tuple[Module, ast.AST, ast.expr]] = []
        for module, call in project.nodes(ast.Call):
            if isinstance(call.func, ast.Name) and call.func.id in _SETS and len(call.args) > 1:
                self._named.append((module, call))
            elif isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGES:
                self._changing.append((module, call, call.func.value))
        self._stored: dict[str, list[tuple[Module, ast.Attribute]]] = {}
        for module, attribute in project.nodes(ast.Attribute):
            if not isinstance(attribute.ctx, ast.Load):
                self._stored.setdefault(attribute.attr, []).append((module, attribute))
        for module, item in project.nodes(ast.Subscript):
            if not isinstance(item.ctx, ast.Load):
                self._changing.append((module, item, item.value))

    @staticmethod
    @once
    def of(project: Project) -> _Setters:
        return _Setters(project)

    def of_attribute(
        self, function: Function, part: ast.Attribute
    ) -> Iterator[tuple[Module, ast.AST, ast.expr | None]]:
        """Yield what may set an attribute, with the object whose it is, as that is written there."""
        for module, stored in self._stored.get(part.attr, ()):
            if not self._apart(function, part.value, module, stored.value):
                yield module, stored, stored.value
        for module, call in self._named:
            name = call.args[1]
            if isinstance(name, ast.Constant) and name.value == part.attr:
                if not self._apart(function, part.value, module, call.args[0]):
                    yield module, call, call.args[0]
        delegates = self._delegates(function, part.value)
        for module, node, held in self._changing:
            owner = attributes_of(held) or held
            if not _sets(node, part.attr) or (owner is held and _key(node) != part.attr):
                continue
            if delegates:
                yield module, node, None
            if not self._apart(function, part.value, module, owner):
                yield module, node, owner

    def of_items(self, function: Function, collection: ast.expr, asked: ast.AST) -> Iterator[Place]:
        key = _key(asked)
        for module, node, held in self._changing:
            if isinstance(key, str) and not _sets(node, key):
                continue
            if _is_stored(node) and _are_apart(key, _key(node)):
                continue
            if not self._apart(function, collection, module, held):
                yield module, node

    def _delegates(self, function: Function, part: ast.expr) -> bool:
        """Tell whether an object looks up elsewhere what it does not have."""
        held = self._alike(function, part)[:1]
        classes = [c for n in held for c in self._project.instance_classes(function.module, n)]
        return any("__getattr__" in base.methods for c in classes for base in c.mro())

    def _alike(self, function: Function, part: ast.expr) -> list[ast.expr]:
        """Return the expressions of a function that are spelt as one is."""
        if (function, part) not in self._spelt:
            nodes = (n for n in function.own_nodes if isinstance(n, ast.expr))
            self._spelt[function, part] = [n for n in nodes if same(n, part)]
        return self._spelt[function, part]

    def _apart(self, function: Function, part: ast.expr, module: Module, other: ast.expr) -> bool:
        ones = self._alike(function, part)
        groups = self._project.values.groups
        if not any(groups(function.module, n) for n in ones) or not groups(module, other):
            return not same(part, other)
        if _is_display(module, other):
            made = self._project.values.group(module, other)
            return all(made not in groups(function.module, n) for n in ones)
        return apart(self._project, function.module, ones, module, other)


def sets_any(node: ast.AST) -> ast.expr | None:
    """Return the object of which a call sets attributes under names that it does not say."""
    if not isinstance(node, ast.Call):
        return None
    if tail(node) == "setattr" and len(node.args) == 3:
        return node.args[0] if string(node.args[1]) is None else None
    held = called_on(node)
    given = [*node.args, *(k.value for k in node.keywords if k.arg is None)]
    told = tail(node) != "update" or all(isinstance(g, ast.Dict) for g in given)
    return None if told or held is None else attributes_of(held)


def got(node: ast.AST) -> ast.Attribute | None:
    """Return what ``getattr(x, "name")``, ``hasattr(x, "name")`` or ``"name" in vars(x)`` asks, as the attribute that it is."""
    found = looked_up(node)
    if isinstance(node, ast.Call) and tail(node) == "hasattr" and len(node.args) == 2:
        found = node.args[0], node.args[1]
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        owner = attributes_of(node.comparators[0])
        found = (owner, node.left) if owner is not None else None
    name = string(found[1]) if found is not None else None
    return ast.Attribute(found[0], name, ast.Load()) if found is not None and name else None


def _sets(node: ast.AST, key: str) -> bool:
    """Tell whether what changes a mapping names a key, or empties it; what is loaded is taken to be what was saved."""
    if _key(node) == key:
        return True
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    named = {k.arg for k in node.keywords}
    for given in node.args:
        named |= {string(k) for k in given.keys if k} if isinstance(given, ast.Dict) else set()
        named |= {k.arg for k in given.keywords} if isinstance(given, ast.Call) else set()
    return key in named or node.func.attr in _EMPTIES


def _key(node: ast.AST) -> object:
    """Return the key that an item, or a method that asks for one, names; None where it is no constant."""
    key: ast.expr | None = None
    if isinstance(node, ast.Subscript):
        key = node.slice
    elif isinstance(node, ast.Call) and node.args:
        key = node.args[0]
    return key.value if isinstance(key, ast.Constant) else None


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)


def _are_apart(one: object, other: object) -> bool:
    """Tell whether two indexes of a list are of different items, counted from one end."""
    if not isinstance(one, int) or not isinstance(other, int):
        return False
    return one != other and one >= 0 and other >= 0


def _is_display(module: Module, node: ast.expr) -> bool:
    """Tell whether a name holds nothing but what displays make: a collection is none of the objects in it."""
    bound = module.scopes.bound(node) if isinstance(node, ast.Name) else []
    made = [assigned(module.tree, binding) for binding in bound]
    return bool(made) and all(isinstance(value, ast.Dict | ast.List | ast.Set) for value in made)


def is_made(module: Module, node: ast.expr) -> bool:
    """Tell whether an expression is the object that the constructor around it makes."""
    function = module.functions.get(module.scopes.scope_of(node))
    return function is not None and function.name == "__init__" and function.is_receiver(node)


def attributes_of(node: ast.expr) -> ast.expr | None:
    """Return the object whose attributes ``vars(object)`` or ``object.__dict__`` holds."""
    if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
        return node.value
    if isinstance(node, ast.Call) and tail(node) in _ATTRIBUTES and len(node.args) == 1:
        return node.args[0]
    return None
