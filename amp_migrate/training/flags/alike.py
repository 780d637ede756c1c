"""Attributes that every object of a class is given alike: what is set again is what was there before."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator

from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.project.order import Loop
from amp_migrate.project.relatives import family
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.flags.setting import Place, setters

_PATH = ast.Name | ast.Attribute | ast.Subscript
_ANEW = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)
_TURNS = Loop | ast.comprehension


class Alike:
    """Follows what methods store back to what a program reads once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[ast.AST, Hashable] = {}

    @staticmethod
    @once
    def of(project: Project) -> Alike:
        """Return what follows them in a project, made once."""
        return Alike(project)

    def varying(self, stores: Iterable[Place]) -> list[Place]:
        """Return some stores but for those of attributes that all which may set them give the same value."""
        return [place for place in stores if not self._is_alike(*place)]

    def _is_alike(self, module: Module, node: ast.AST) -> bool:
        function = self._project.function_of(module, node)
        if not isinstance(node, ast.Attribute) or not function.is_receiver(node.value):
            return False
        return self._of_own(function, node) is not None

    def _of_own(self, function: Function, node: ast.Attribute) -> Hashable:
        """Return where an attribute of the object of a method is read from, which all that sets it gives it."""
        if function.cls is None:
            return None
        setting = [*setters(self._project, function, node, making=True)]
        begins = any(_begins(cls, node.attr) for cls in family(function.cls))
        if begins and not any(self._is_first(*place) for place in setting):
            return None
        given = {self._stored(*place) for place in setting}
        return given.pop() if len(given) == 1 else None

    def _is_first(self, module: Module, node: ast.AST) -> bool:
        """Tell whether a constructor sets something whenever it runs."""
        constructs = self._project.function_of(module, node).name == "__init__"
        return constructs and not any(module.tree.sides(node))

    def _stored(self, module: Module, node: ast.AST) -> Hashable:
        """Return what a method gives an attribute of its object, by where that comes from; None where it may vary."""
        function, statement = self._project.function_of(module, node), module.tree.statement(node)
        if not isinstance(node, ast.Attribute) or not function.is_receiver(node.value):
            return None
        if not isinstance(statement, ast.Assign) or node not in statement.targets:
            return None
        return self._source(function, statement.value)

    def _source(self, function: Function, node: ast.expr) -> Hashable:
        """Return what an expression is in all runs of a function, by the variables that it is read from; None if it may vary.

        What is asked for itself meanwhile may vary.
        """
        if node not in self._known:
            self._known[node] = None
            self._known[node] = self._found(function, node)
        return self._known[node]

    def _found(self, function: Function, node: ast.expr) -> Hashable:
        if any(isinstance(part, _ANEW) for part in ast.walk(node)):
            return node if self._is_once(function, node) else None
        if isinstance(node, ast.Name):
            return self._of_variable(function, node)
        read = [self._of_path(function, part) for part in _paths(node)]
        return None if None in read else (ast.unparse(node), *read)

    def _of_path(self, function: Function, node: ast.expr) -> Hashable:
        """Return where a path is read from: nothing sets it, but what binds its variable once, or what sets it alike."""
        if isinstance(node, ast.Name):
            return self._of_variable(function, node)
        if not isinstance(node, ast.Attribute | ast.Subscript):
            return None
        if isinstance(node, ast.Attribute) and function.is_receiver(node.value):
            return self._of_own(function, node)
        setting, above = (
            set(setters(self._project, function, each, making=True)) for each in (node, node.value)
        )
        if setting - above:
            return None
        return self._of_path(function, node.value)

    def _of_variable(self, function: Function, node: ast.Name) -> Hashable:
        """Return where a variable gets its value, which it gets once."""
        module = function.module
        owner, bound = module.scopes.owner(node), module.scopes.bound(node)
        home = module.functions.get(owner) if owner is not None else None
        if home is None or len(bound) != 1:
            return None
        binding = bound[0]
        if isinstance(binding, ast.arg):
            return self._of_parameter(home, binding.arg)
        if self._is_once(home, binding):
            return owner, node.id
        value = bound_value(module, binding)
        return None if value is None else self._source(home, value)

    def _of_parameter(self, function: Function, name: str) -> Hashable:
        if not self._is_seen(function) or name not in function.parameters.names:
            return None
        received = self._project.received(function, name, itself=True)
        given = {None if v is None else self._source(where, v) for _, where, v in received}
        return given.pop() if len(given) == 1 else None

    def _is_seen(self, function: Function) -> bool:
        """Tell whether all calls of a function are seen: of a class in a collection, those of what is taken out of it."""
        escapes = self._project.escapes(function)
        kept = [where.module.tree.parent(node) for where, node, _ in escapes]
        if not all(isinstance(up, ast.Dict | ast.List | ast.Tuple) for up in kept):
            return False
        sites = self._project.callers(function)
        return not escapes or any(isinstance(s.call.func, ast.Subscript) for s in sites)

    def _is_once(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a run of the program comes to a node of a function once."""
        return not _turns(function.module, node) and self._runs_once(function, frozenset())

    def _runs_once(self, function: Function, above: frozenset[Function]) -> bool:
        """Tell whether a run of the program runs a function once."""
        if function.node is None:
            return True
        sites = self._project.callers(function)
        if len(sites) != 1 or not self._is_seen(function) or function in above:
            return False
        site = sites[0]
        looped = _turns(site.function.module, site.call)
        return not looped and self._runs_once(site.function, above | {function})


def _begins(cls: Class, attr: str) -> bool:
    """Tell whether objects of a class have an attribute from the start, before any method sets it."""
    return attr in cls.methods or bool(cls.module.scopes.bindings(cls.node, attr))


def _paths(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the longest paths that an expression reads."""
    if isinstance(node, _PATH):
        yield node
        yield from _paths(node.slice) if isinstance(node, ast.Subscript) else ()
        return
    for part in ast.iter_child_nodes(node):
        yield from _paths(part)


def _turns(module: Module, node: ast.AST) -> bool:
    """Tell whether a node stands in a loop of its function."""
    for up in module.tree.ancestors(node):
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return False
        if isinstance(up, _TURNS):
            return True
    return False
