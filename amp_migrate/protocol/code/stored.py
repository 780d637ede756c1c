"""Which attributes may hold a function of the project, by what is stored under their names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import all_given, looked_up, same, tail
from amp_migrate.project import CallSite, Class, Function, Module, Project
from amp_migrate.project.journeys import PUTS
from amp_migrate.training.bindings import bound_value, returned, unpacked

# An attribute that a value is read from, or one of its items; None for what may be a function.
_Source = tuple[str, bool] | None
_Seen = set[tuple[ast.AST, bool]]
_Stored = dict[str, list[tuple[Module, ast.expr, ast.Attribute | None]]]
_ITEM = ("[]", True)


class _Place(NamedTuple):
    """A value that may be a function, or hold one among its items; `under` is the attribute that it is stored under."""

    module: Module
    node: ast.expr
    items: bool
    under: ast.Attribute | None = None


class Stored:
    """Follows what is stored under an attribute, of whatever object, back to where a function may come in."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[str, bool] = {}

    def holds_function(self, attribute: str) -> bool:
        """Tell whether a function may be found under the name of an attribute."""
        if attribute not in self._known:
            self._known[attribute] = self._search([(attribute, False)])
        return self._known[attribute]

    def _search(self, wanted: list[tuple[str, bool]]) -> bool:
        seen: _Seen = set()
        for name, items in wanted:
            for module, value, under in self._values.get(name, ()):
                for source in self._sources(_Place(module, value, items, under), seen):
                    if source is None:
                        return True
                    if source not in wanted:
                        wanted.append(source)
        return False

    @cached_property
    def _values(self) -> _Stored:
        """What is stored under the names of attributes: by assignments, in bodies of classes, and as keywords."""
        found: _Stored = {}
        for module in self._project.modules.values():
            for node in module.tree.nodes(ast.Attribute):
                if isinstance(node.ctx, ast.Store):
                    stored = ((module, value, node) for value in _stored(module, node))
                    found.setdefault(node.attr, []).extend(stored)
            for cls in module.classes.values():
                for name, value in _in_body(cls):
                    found.setdefault(name, []).append((module, value, None))
            for call in module.tree.nodes(ast.Call):
                for name, value in self._given(call):
                    found.setdefault(name, []).append((module, value, None))
            found.setdefault(_ITEM[0], []).extend((module, item, None) for item in _items(module))
        return found

    def _given(self, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        """Yield what a call stores by a name that it tells, and the fields of what it makes."""
        func = call.func
        if isinstance(func, ast.Name) and func.id == "setattr" and len(call.args) == 3:
            name = string(call.args[1])
            if name is not None:
                yield name, call.args[2]
        elif not self._project.callees(call):
            for cls in self._project.constructed(call):
                yield from ((k.arg, k.value) for k in call.keywords if k.arg is not None)
                fields = [name for c in cls.mro() for name in c.fields()]
                yield from ((name, value) for name in fields for value in call.args)

    def _sources(self, place: _Place, seen: _Seen) -> Iterator[_Source]:
        module, node, items, _ = place
        if (node, items) in seen:
            return
        seen.add((node, items))
        if isinstance(node, ast.Name):
            yield from self._of_name(place, node, seen)
        elif isinstance(node, ast.Attribute):
            if not _is_its_own(node, place.under):
                yield None if self._is_method(module, node) else (node.attr, items)
        elif isinstance(node, ast.Call):
            yield from self._of_call(place, node, seen)
        elif isinstance(node, ast.Lambda | ast.Yield | ast.YieldFrom):
            yield None
        elif isinstance(node, ast.Subscript):
            yield _ITEM
            yield from self._sources(place._replace(node=node.value, items=True), seen)
        else:
            for part in _parts(node, items):
                yield from self._sources(place._replace(node=part), seen)

    def _of_name(self, place: _Place, node: ast.Name, seen: _Seen) -> Iterator[_Source]:
        module = place.module
        for binding in module.scopes.bound(node):
            if isinstance(binding, ast.arg):
                yield from self._of_parameter(place, binding, seen)
            elif isinstance(binding, ast.alias | ast.Import | ast.ImportFrom):
                if any(not isinstance(m, str) for m in self._project.meanings(module, node)):
                    yield None
            else:
                yield from self._of_binding(place, binding, seen)

    def _of_binding(self, place: _Place, binding: ast.AST, seen: _Seen) -> Iterator[_Source]:
        module = place.module
        statement = module.tree.parent(binding)
        if isinstance(statement, ast.AugAssign) and not place.items:
            return
        value = bound_value(module, binding)
        values = [value] if value else unpacked(self._project, module, binding)
        if not values:
            yield None
        whole = isinstance(statement, ast.Assign | ast.AnnAssign | ast.NamedExpr)
        if not whole:
            yield _ITEM
        for part in values:
            where = self._project.module_of(part)
            yield from self._sources(_Place(where, part, place.items or not whole), seen)

    def _of_parameter(self, place: _Place, parameter: ast.arg, seen: _Seen) -> Iterator[_Source]:
        function = self._project.function_of(place.module, parameter)
        sites = self._project.callers(function)
        known = function.node is not None and parameter.arg in function.parameters.names
        if not known or not sites or self._project.escapes(function):
            yield None
            return
        given = [v for site in sites for v in self._arguments(site, function, parameter.arg)]
        default = function.parameters.defaults.get(parameter.arg)
        for value in (*given, *([default] if default is not None else [])):
            where = self._project.module_of(value)
            yield from self._sources(_Place(where, value, place.items), seen)

    def _arguments(self, site: CallSite, function: Function, name: str) -> list[ast.expr]:
        value = self._project.arguments(site, function).get(name)
        if value is not None:
            return [value]
        starred = [a for a in site.call.args if isinstance(a, ast.Starred)]
        return [*starred, *(k.value for k in site.call.keywords if k.arg is None)]

    def _is_method(self, module: Module, node: ast.Attribute) -> bool:
        if node.attr in self._methods:
            return True
        return any(not isinstance(m, str) for m in self._project.meanings(module, node))

    @cached_property
    def _methods(self) -> frozenset[str]:
        return frozenset(f.name for f in self._project.functions() if f.cls is not None)

    def _of_call(self, place: _Place, node: ast.Call, seen: _Seen) -> Iterator[_Source]:
        made = self._project.constructed(node)
        if made:
            if any(cls.method("__call__") for cls in made):
                yield None
            return
        callees = self._project.callees(node)
        for callee in callees:
            for value in returned(callee):
                yield from self._sources(_Place(callee.module, value, place.items), seen)
        if callees:
            return
        if (attribute := looked_up(node)) is not None:
            name = string(attribute[1])
            yield None if name is None else (name, place.items)
        parts = [
            part for part in self._taken(place.module, node) if not _is_its_own(part, place.under)
        ]
        if parts:
            yield _ITEM
        for part in parts:
            yield from self._sources(place._replace(node=part, items=True), seen)

    def _taken(self, module: Module, node: ast.Call) -> list[ast.expr]:
        """Return what the result of a call may be taken from: a function that is bound to an object stays what it is."""
        func = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        if isinstance(node.func, ast.Attribute) and node.func.attr == "__get__":
            return [func]
        known = self._project.external(module, node.func) is not None
        given = (*node.args, *(k.value for k in node.keywords))
        return [
            part
            for part in (*(() if known else (func,)), *given)
            if not isinstance(part, ast.Constant)
        ]


def _is_its_own(node: ast.expr, under: ast.Attribute | None) -> bool:
    """Tell whether an object gets back what it had there, as in ``model.forward = wrap(type(model).forward)``."""
    if under is None or not isinstance(node, ast.Attribute) or node.attr != under.attr:
        return False
    of_class = node.value
    if isinstance(of_class, ast.Call) and tail(of_class) == "type" and len(of_class.args) == 1:
        of_class = of_class.args[0]
    return same(of_class, under.value)


def _stored(module: Module, node: ast.Attribute) -> Iterator[ast.expr]:
    """Yield what is assigned to an attribute; an item of that where it is taken apart."""
    tree = module.tree
    statement = tree.statement(node)
    whole = tree.parent(node) is statement
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        value = statement.value
        up = tree.parent(node)
        if isinstance(up, ast.Tuple) and isinstance(value, ast.Tuple):
            if len(up.elts) == len(value.elts) and tree.parent(up) is statement:
                whole, value = True, value.elts[up.elts.index(node)]
        if value is not None:
            yield value if whole else _item_of(value)
    elif isinstance(statement, ast.For | ast.AsyncFor):
        yield _item_of(statement.iter)
    elif isinstance(statement, ast.With | ast.AsyncWith):
        yield from (item.context_expr for item in statement.items)
    elif not isinstance(statement, ast.AugAssign):
        yield ast.Yield()


def _item_of(value: ast.expr) -> ast.Subscript:
    return ast.Subscript(value, ast.Constant(0), ast.Load())


def _items(module: Module) -> Iterator[ast.expr]:
    """Yield what is put into collections."""
    for added in module.tree.nodes(ast.AugAssign):
        yield added.value
    for node in module.tree.nodes(ast.Subscript):
        statement = module.tree.parent(node)
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            if isinstance(node.ctx, ast.Store) and statement.value is not None:
                yield statement.value
    for call in module.tree.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in PUTS:
            yield from all_given(call)
    for display in module.tree.nodes(ast.List, ast.Tuple):
        yield from display.elts
    for mapping in module.tree.nodes(ast.Dict):
        yield from mapping.values


def _in_body(cls: Class) -> Iterator[tuple[str, ast.expr]]:
    for statement in cls.node.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.value
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if statement.value is not None:
                yield statement.target.id, statement.value


def _parts(node: ast.expr, items: bool) -> list[ast.expr]:
    """Return the parts of an expression that its value may be, or those of its items."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.NamedExpr | ast.Await | ast.Starred):
        return [node.value]
    if not items:
        return []
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        return [node.elt]
    if isinstance(node, ast.DictComp):
        return [node.value]
    return [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
