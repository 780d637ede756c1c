"""What methods put into a container that each object of a class has for itself: ``self.items[key] = cls``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.facts.paths import LOOKS, MUTATORS
from amp_migrate.modules.lookup import Lookup
from amp_migrate.modules.model import Class, Function, Module
from amp_migrate.values.nodes import enclosing_class, function_of

Put = tuple[Function, str]
"""A parameter of a method, or of a function in one, that is put into the container."""

_ADDING = frozenset({"add", "append", "appendleft"})
_VIEWS = frozenset({"items", "keys", "values"})
_PASSES = LOOKS | {"dict", "enumerate", "iter", "list", "set", "sorted", "tuple"}
_EMPTY = frozenset({"collections.OrderedDict", "collections.deque"})
_LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
_SEEN = (ast.BoolOp, ast.Compare, ast.Expr, ast.FormattedValue, ast.If, ast.UnaryOp, ast.While)


class _Unclear(Exception):
    """A container may be another one, or hold something else."""


class Puts:
    """Reads every place that mentions an attribute of a class."""

    def __init__(self, lookup: Lookup, modules: Sequence[Module]) -> None:
        self._lookup = lookup
        self._modules = modules

    def own(self) -> Iterator[tuple[Class, str]]:
        """Yield the attributes in which methods of classes make an empty container."""
        for module in self._modules:
            found: dict[tuple[Class, str], None] = {}
            for statement in module.tree.nodes(ast.Assign, ast.AnnAssign):
                if statement.value is None or not self._is_empty(module, statement.value):
                    continue
                for target in _targets(statement):
                    cls = self._holder(module, target)
                    if isinstance(target, ast.Attribute) and cls is not None:
                        found[cls, target.attr] = None
            yield from found

    def into(self, cls: Class, name: str) -> list[Put] | None:
        """Return all that is put into an attribute of the objects of a class; None where that is not known of each object."""
        kin = {cls, *cls.subclasses()}
        kin |= {base for one in kin for base in one.mro()}
        if any(name in one.module.scopes.names(one.node) for one in kin):
            return None
        if self._is_said(name) or any(map(self._takes_all, kin)):
            return None
        puts: dict[Put, None] = {}
        try:
            for module in self._modules:
                for node in module.tree.attributes(name):
                    holder = self._holder(module, node)
                    if holder is not None and holder not in kin:
                        continue
                    used = list(self._used(module, node, frozenset()))
                    if used and holder is None:
                        return None
                    puts.update(dict.fromkeys(used))
        except _Unclear:
            return None
        return list(puts)

    def _is_said(self, name: str) -> bool:
        """Tell whether something may take an attribute by its name, without spelling it."""
        return any(
            module.tree.says(name)
            or any(name in pattern.kwd_attrs for pattern in module.tree.nodes(ast.MatchClass))
            for module in self._modules
        )

    def _takes_all(self, cls: Class) -> bool:
        """Tell whether a class takes all attributes of an object at once."""
        places = cls.module.tree.attributes("__dict__")
        return any(enclosing_class(cls.module, place) is cls for place in places)

    def _holder(self, module: Module, node: ast.expr) -> Class | None:
        """Return the class whose method takes an attribute of its own object."""
        base = node.value if isinstance(node, ast.Attribute) else None
        return receiver_class(module, base) if base is not None else None

    def _is_empty(self, module: Module, value: ast.expr) -> bool:
        if isinstance(value, ast.Dict):
            return not value.keys
        if isinstance(value, ast.List):
            return not value.elts
        if not isinstance(value, ast.Call) or value.args or value.keywords:
            return False
        if module.scopes.builtin(value.func) in {"dict", "list", "set"}:
            return True
        return bool(_EMPTY & set(map(str, self._lookup.expression(module, value.func))))

    def _used(self, module: Module, node: ast.expr, around: frozenset[ast.expr]) -> Iterator[Put]:
        """Yield what a place that has the container puts into it; raise where it does anything else than look."""
        up = module.tree.parent(node)
        if node in around:
            raise _Unclear
        if isinstance(getattr(node, "ctx", None), ast.Store):
            if not isinstance(up, ast.Assign | ast.AnnAssign) or up.value is None:
                raise _Unclear
            if not self._is_empty(module, up.value) or node not in _targets(up):
                raise _Unclear
        elif isinstance(up, ast.Subscript) and up.value is node:
            yield from self._item(module, up)
        elif isinstance(up, ast.Attribute):
            yield from self._method(module, up)
        elif isinstance(up, ast.Call) and node in up.args:
            if module.scopes.builtin(up.func) not in _PASSES:
                raise _Unclear
        elif isinstance(up, ast.Assign | ast.AnnAssign | ast.Return):
            for other in self._others(module, up):
                yield from self._used(module, other, around | {node})
        elif not isinstance(up, _SEEN) and not (isinstance(up, _LOOPS) and up.iter is node):
            raise _Unclear

    def _others(
        self, module: Module, up: ast.Assign | ast.AnnAssign | ast.Return
    ) -> list[ast.expr]:
        """Return the places that have a container by the variable, or as the property, that it is handed to."""
        if isinstance(up, ast.Return):
            function = function_of(module, up)
            name = function.name
            if not function.is_property or function.cls is None or self._is_said(name):
                raise _Unclear
            return [n for m in self._modules for n in m.tree.attributes(name)]
        return _reads(module, up)

    def _item(self, module: Module, item: ast.Subscript) -> Iterator[Put]:
        if isinstance(item.ctx, ast.Load):
            self._looks(module, item)
        elif isinstance(item.ctx, ast.Store):
            up = module.tree.parent(item)
            if not isinstance(up, ast.Assign) or item not in up.targets:
                raise _Unclear
            if isinstance(item.slice, ast.Slice):
                raise _Unclear
            yield _parameter(module, up.value)

    def _method(self, module: Module, func: ast.Attribute) -> Iterator[Put]:
        call = module.tree.call_of(func)
        if call is None:
            raise _Unclear
        if func.attr in _ADDING and len(call.args) == 1:
            yield _parameter(module, call.args[0])
        elif func.attr == "setdefault" and len(call.args) == 2:
            yield _parameter(module, call.args[1])
            self._looks(module, call)
        elif func.attr in {"get", "pop"}:
            self._looks(module, call)
        elif func.attr not in _VIEWS:
            raise _Unclear

    def _looks(self, module: Module, node: ast.expr) -> None:
        """Raise where a place that has an item may change what that holds."""
        up = module.tree.parent(node)
        if isinstance(up, ast.Assign | ast.AnnAssign):
            for read in _reads(module, up):
                self._looks(module, read)
        elif isinstance(up, ast.Call) and node in up.args:
            if module.scopes.builtin(up.func) not in LOOKS:
                raise _Unclear
        elif isinstance(up, ast.Attribute):
            if not isinstance(up.ctx, ast.Load) or up.attr in MUTATORS:
                raise _Unclear
        elif isinstance(up, ast.Subscript) and up.value is node:
            if not isinstance(up.ctx, ast.Load):
                raise _Unclear
            self._looks(module, up)
        elif isinstance(up, ast.IfExp | ast.BoolOp):
            self._looks(module, up)
        elif not isinstance(up, (*_SEEN, ast.Return, ast.Call, ast.IfExp)):
            raise _Unclear


def receiver_class(module: Module, node: ast.expr) -> Class | None:
    """Return the class whose method, or a function in it, an expression is the object of."""
    if not isinstance(node, ast.Name):
        return None
    method = function_of(module, node).method
    if not method.is_receiver(node) or method.is_class:
        return None
    bindings = module.scopes.bound(node)
    lone = len(bindings) == 1 and module.scopes.owner(node) is method.scope
    return enclosing_class(module, node) if lone else None


def parameter(module: Module, node: ast.expr) -> Put | None:
    """Return the parameter that an expression is, of a method or a function in one, where nothing else is bound to it."""
    scope = module.scopes.owner(node) if isinstance(node, ast.Name) else None
    function = module.functions.get(scope) if scope is not None else None
    if not isinstance(node, ast.Name) or function is None or function.class_around is None:
        return None
    bound = module.scopes.bound(node)
    lone = len(bound) == 1 and isinstance(bound[0], ast.arg)
    return (function, node.id) if lone and node.id in function.parameters.names else None


def _parameter(module: Module, node: ast.expr) -> Put:
    found = parameter(module, node)
    if found is None:
        raise _Unclear
    return found


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _reads(module: Module, up: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    """Return the places that read the variables that a statement assigns to."""
    targets = _targets(up)
    names = [target for target in targets if isinstance(target, ast.Name)]
    owners = [module.scopes.owner(name) for name in names]
    if len(names) < len(targets) or not all(owner in module.functions for owner in owners):
        raise _Unclear
    if any(isinstance(owner, ast.Module) for owner in owners):
        raise _Unclear
    return [
        read
        for name, owner in zip(names, owners, strict=True)
        for read in module.scopes.reads(owner, name.id)
    ]
