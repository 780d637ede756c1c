"""The flags that decide whether Apex is initialized, wherever they are read and set."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from amp_migrate.check.apex.assumed import Initialize, guards
from amp_migrate.check.apex.given import POSITIONS
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import argument, walk
from amp_migrate.project import Function, Project
from amp_migrate.project.once import once
from amp_migrate.project.order import levels
from amp_migrate.project.reach import leading_to
from amp_migrate.project.relatives import apart
from amp_migrate.training.bindings import bound_value, puts_back
from amp_migrate.training.flags.setting import got, read, sets_any, setters

PATH = ast.Name | ast.Attribute | ast.Subscript
_ARGUMENTS = {"enabled": 2, "opt_level": 3, **POSITIONS}


class Flag(NamedTuple):
    """A variable, attribute or item of a function, or a parameter of it."""

    function: Function
    node: ast.AST


class Flags:
    """Tells the flags of a project apart."""

    def __init__(self, project: Project) -> None:
        self._project = project

    @staticmethod
    @once
    def of(project: Project) -> Flags:
        """Return what tells the flags of a project apart, made once."""
        return Flags(project)

    def asked(self, initializes: Iterable[Initialize]) -> Iterator[Flag]:
        """Yield what decides whether Apex is initialized, and how, in whatever function."""
        for item in initializes:
            given = (argument(item.call, name, place) for name, place in _ARGUMENTS.items())
            tests = [(item.function, value) for value in given if value is not None]
            own = len(tests)
            for function, call in leading_to(self._project, (item.function, item.call)):
                tests += [(function, test) for test, _ in guards(function, call)]
                tests += [(function, test) for test in _returning(function, call)]
            for function, test in tests:
                yield from read_by(function, test)
            for function, value in tests[:own]:
                yield from (Flag(function, call) for call in calls(value))

    def same(self, one: Flag, other: Flag) -> bool:
        """Tell whether two flags are the same variable, or the same attribute or item of what may be one object."""
        a, b = one.node, other.node
        if _spelling(a) != _spelling(b):
            return False
        if isinstance(a, ast.Attribute | ast.Subscript):
            assert isinstance(b, ast.Attribute | ast.Subscript)
            return self._may_be_one(one, a.value, other, b.value)
        if isinstance(a, ast.Call):
            return one.function is other.function
        names = isinstance(a, ast.Name | ast.arg) and isinstance(b, ast.Name | ast.arg)
        return names and _owner(one) is _owner(other)

    def _may_be_one(self, one: Flag, a: ast.expr, other: Flag, b: ast.expr) -> bool:
        return not apart(self._project, one.function.module, [a], other.function.module, b)

    def alike(self, one: Flag, other: Flag) -> bool:
        """Tell whether two flags hold one value, handed on from one to the other."""
        return bool(self._groups(one) & self._groups(other))

    def among(self, one: Flag, flags: Iterable[Flag]) -> bool:
        """Tell whether a flag is one of some, or holds the value of one."""
        return any(self.same(one, flag) or self.alike(one, flag) for flag in flags)

    def is_computed(self, stored: Flag, flags: Sequence[Flag]) -> bool:
        """Tell whether what is stored is the one value of a variable, and nothing but some flags decides on it."""
        function, node = stored
        if not isinstance(node, ast.Name) or len(function.module.scopes.bound(node)) > 1:
            return False
        value = bound_value(function.module, node)
        if value is None or any(isinstance(part, ast.Call) for part in ast.walk(value)):
            return False
        return all(self.among(Flag(function, part), flags) for part in paths(value))

    def _groups(self, flag: Flag) -> frozenset[int]:
        node = flag.node
        if not isinstance(node, ast.expr | ast.arg):
            return frozenset()
        return self._project.values.groups(flag.function.module, node)

    def stores(self, flags: Sequence[Flag]) -> Iterator[Flag]:
        """Yield where one of some flags, or what holds it, gets another value."""
        wanted: dict[Hashable, list[Flag]] = {}
        for flag in (*flags, *filter(None, map(_holder, flags))):
            wanted.setdefault(_spelling(flag.node), []).append(flag)
        for spelling, stored in _stores(self._project):
            if any(self.same(stored, flag) for flag in wanted.get(spelling, ())):
                yield stored
        for flag in flags:
            for module, node in setters(self._project, *flag, making=True):
                if isinstance(node, ast.Call | ast.Subscript):
                    yield Flag(self._project.function_of(module, node), node)
        for call, held in self._vague:
            attributes = (f for f in flags if isinstance(f.node, ast.Attribute))
            if any(self._may_be_one(f, f.node.value, call, held) for f in attributes):  # type: ignore[attr-defined]
                yield call

    @cached_property
    def _vague(self) -> list[tuple[Flag, ast.expr]]:
        """The calls that may set any attribute, with the objects whose it is."""
        return [
            (Flag(self._project.function_of(module, call), call), held)
            for module, call in self._project.nodes(ast.Call)
            if (held := sets_any(call)) is not None
        ]

    def behind(self, flag: Flag) -> Iterator[Flag]:
        """Yield what is read where a flag is a property, or what a function gives that is called."""
        for function, body in read(self._project, *flag):
            if body is not flag.node:
                yield from (Flag(function, part) for part in paths(body) if _lasts(function, part))

    def without_copies(self, stores: Iterable[Flag], flags: Iterable[Flag]) -> list[Flag]:
        """Return the stores but for those that hand on what some flags hold, as it is."""
        equal, left = list(flags), list(stores)
        while copies := [s for s in left if self._is_copy(s, equal)]:
            equal += copies
            left = [s for s in left if s not in copies]
        return left

    def _is_copy(self, stored: Flag, equal: list[Flag]) -> bool:
        if puts_back(stored.function.module, stored.node):
            return True
        value = getattr(stored.function.module.tree.statement(stored.node), "value", None)
        given = Flag(stored.function, value) if isinstance(value, PATH) else None
        return given is not None and any(self.same(given, flag) for flag in equal)


@once
def _stores(project: Project) -> list[tuple[Hashable, Flag]]:
    """Return whatever gets a value somewhere, by how it is written."""
    return [
        (_spelling(node), Flag(function, node))
        for function in project.functions()
        for node in function.own_nodes
        if isinstance(node, PATH) and isinstance(node.ctx, ast.Store)
    ]


def _spelling(node: ast.AST) -> Hashable:
    """Return what is written alike for all flags that may be the same."""
    if isinstance(node, ast.Attribute):
        return ast.Attribute, node.attr
    if isinstance(node, ast.Subscript):
        return ast.Subscript, ast.unparse(node.slice)
    return text_of(node)


def _holder(flag: Flag) -> Flag | None:
    """Return the variable that a flag is an attribute or item of, where that is bound more than once."""
    below = flag.node
    while isinstance(below, ast.Attribute | ast.Subscript):
        below = below.value
    if not isinstance(below, ast.Name) or below is flag.node:
        return None
    bound = flag.function.module.scopes.bound(below)
    return Flag(flag.function, below) if len(bound) > 1 else None


def _lasts(function: Function, node: ast.expr) -> bool:
    """Tell whether something is more than a variable of a function."""
    return (
        not isinstance(node, ast.Name) or function.module.scopes.owner(node) is not function.scope
    )


def is_lasting(flag: Flag) -> bool:
    """Tell whether a flag outlasts the run of its function: an attribute, an item, or a variable of the file."""
    function, node = flag
    if not isinstance(node, ast.Name):
        return isinstance(node, PATH)
    return function.module.scopes.owner(node) is not function.scope


def _returning(function: Function, node: ast.AST) -> Iterator[ast.expr]:
    """Yield the tests that return in front of a node: ``if self.ready: return``."""
    tree = function.module.tree
    for level in levels(tree, node):
        block = tree.block(level)
        for statement in block[: block.index(level)]:
            if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return):
                yield statement.test


def read_by(function: Function, test: ast.expr) -> Iterator[Flag]:
    """Yield the flags that a test reads, and those that its variables are computed from."""
    for part in closure(paths(test), partial(_values, function)):
        yield Flag(function, part)


def paths(node: ast.AST) -> list[ast.expr]:
    """Return the longest paths that an expression, or a function by itself, reads, but for what it calls."""
    found: list[ast.expr] = []
    queue = [node]
    for part in queue:
        if isinstance(part, PATH):
            found += [part] if isinstance(part.ctx, ast.Load) else []
            queue += [part.slice] if isinstance(part, ast.Subscript) else []
        elif isinstance(part, ast.Call):
            queue += [*part.args, *part.keywords]
        elif part is node or not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            queue += ast.iter_child_nodes(part)
    return found


def calls(node: ast.AST) -> list[ast.expr]:
    """Return the calls in an expression, and the attributes that it asks for by name."""
    parts = list(walk(node))
    found = [part for part in parts if isinstance(part, ast.Call)]
    return [*found, *(named for part in parts if (named := got(part)) is not None)]


def _values(function: Function, node: ast.expr) -> list[ast.expr]:
    """Return the paths that a variable is computed from."""
    if not isinstance(node, ast.Name):
        return []
    bound = function.module.scopes.bound(node)
    values = (bound_value(function.module, binding) for binding in bound)
    return [part for value in values if value is not None for part in paths(value)]


def text_of(node: ast.AST) -> str:
    """Return a flag as it is written."""
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)


def _owner(flag: Flag) -> ast.AST | None:
    scopes = flag.function.module.scopes
    if isinstance(flag.node, ast.arg):
        return flag.function.scope
    assert isinstance(flag.node, ast.Name)
    return scopes.owner(flag.node)
