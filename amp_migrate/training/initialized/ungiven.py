"""Networks that `amp.initialize` was surely not given: O2 and O3 left them in fp32, and O1 cast them as all that ran."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.facts.paths import all_given, bottom, outward
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.forwarded import Received
from amp_migrate.project.rounds import may_follow
from amp_migrate.training.bindings import returned, wholes
from amp_migrate.training.forwards.classes import is_of_network
from amp_migrate.training.initialized.kept import kept
from amp_migrate.training.origins.reaching import Reaching
from amp_migrate.values.objects import Instance, Made
from amp_migrate.values.values import Near

Above = frozenset[tuple[Function, str]]
Begins = Callable[[Function], Collection[ast.AST]]
"""Gives what initializes in a function, by itself or in what it calls."""

_LOOKING = frozenset({"get", "items", "keys", "values"})
"""Methods of a table that change nothing in it."""


class Origin(NamedTuple):
    """Where a network comes from: an expression in a function; `other` if `amp.initialize` was surely not given it."""

    function: Function
    node: ast.expr
    other: bool


class Ungiven:
    """Answers for the expressions of a project; `given` are the names of the networks that are initialized, and of what holds them.

    A network is another one where none of these flows to its expression, or where what it holds has been made
    since anything was initialized.
    """

    def __init__(
        self, project: Project, reaching: Reaching, given: Collection[int], begins: Begins
    ) -> None:
        self._project = project
        self._reaching = reaching
        self._given = frozenset(given)
        self._begins = begins

    def origins(self, function: Function, node: ast.expr) -> list[Origin]:
        """Return where a network comes from: of a parameter, what the calls hand in, however far up."""
        return list(dict.fromkeys(self._origins(function, node, frozenset(), behind=False)))

    def is_other(self, function: Function, node: ast.expr) -> bool:
        """Tell whether an expression holds what `amp.initialize` was surely not given, whoever calls its function."""
        origins = self.origins(function, node)
        return bool(origins) and all(origin.other for origin in origins)

    def is_given(self, function: Function, node: ast.expr) -> bool:
        """Tell whether an expression holds a network that `amp.initialize` may be given, and surely no other one."""
        origins = self.origins(function, node)
        own = bool(origins) and not any(origin.other for origin in origins)
        return own and self._is_given(function.module, node)

    def may_hold(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an expression may hold a network that is initialized, or an object which is seen to hold one."""
        return self._is_given(module, node) or (
            self._near(module, node) and self._holds(module, node)
        )

    def _origins(
        self,
        function: Function,
        node: ast.expr,
        above: Above,
        *,
        behind: bool,
    ) -> Iterator[Origin]:
        """Yield the origins of a network; `behind`: what it is handed to may have initialized it before it is run."""
        if isinstance(node, ast.Attribute) and self._is_part(function, node):
            yield from self._origins(function, node.value, above, behind=behind)
            return
        parameters = kept(self._project, self._reaching, function, node)
        if parameters and not any(self._begins(each.function) for each in parameters):
            every = (got for each in parameters for got in self._project.received(*each))
            yield from (o for got in every for o in self._kept(function, node, got, above))
            return
        held = self._reaching.of(function, node) if isinstance(node, ast.Name) else []
        name = next((value.arg for value in held if isinstance(value, ast.arg)), None)
        if name is None:
            yield Origin(function, node, self._is_other(function, node, behind))
        elif (function, name) not in above:
            above |= {(function, name)}
            begins = self._begins(function)
            behind |= any(may_follow(self._project, function, begin, node) for begin in begins)
            for value in held:
                if not isinstance(value, ast.arg):
                    inner = self._wrapped(name, value)
                    if inner is None:
                        yield Origin(function, node, other=False)
                    else:
                        yield from self._origins(function, inner, above, behind=behind)
            received = self._project.received(function, name)
            hidden = any(True for _ in self._project.escapes(function))
            if not received or hidden or any(got.node is None for got in received):
                yield Origin(function, node, other=False)
            for got in received:
                if got.node is not None:
                    yield from self._origins(got.function, got.node, above, behind=behind)

    def _kept(
        self, function: Function, node: ast.expr, got: Received, above: Above
    ) -> Iterator[Origin]:
        """Yield the origins of what an object was made with, which nothing may have initialized since."""
        if isinstance(got.node, ast.Constant):
            return
        begins, given = self._begins(got.function), got.node
        since = given and any(may_follow(self._project, got.function, given, b) for b in begins)
        if given is None or since or not begins:
            yield Origin(function, node, other=False)
        else:
            yield from self._origins(got.function, given, above, behind=False)

    def _is_part(self, function: Function, node: ast.Attribute) -> bool:
        """Tell whether it hangs on what an attribute is taken from, and not on the object of a method, what it is."""
        base = bottom(node)
        plain = isinstance(base, ast.Name) and not function.is_receiver(base)
        return plain and not self._is_apart(function, node)

    def _wrapped(self, name: str, value: ast.expr | None) -> ast.Name | None:
        """Return a variable that code out of sight wraps, or whose wrapper goes: ``model = DataParallel(model)``, ``model.module``."""
        if isinstance(value, ast.Attribute) and value.attr == "module":
            value = value.value
            return value if isinstance(value, ast.Name) and value.id == name else None
        if not isinstance(value, ast.Call) or self._project.callees(value):
            return None
        given = [n for n in all_given(value) if isinstance(n, ast.Name) and n.id == name]
        return given[0] if len(given) == 1 else None

    def _is_other(self, function: Function, node: ast.expr, behind: bool) -> bool:
        if behind or self._is_apart(function, node):
            return self._is_apart(function, node)
        made = self.may_hold(function.module, node) or self._is_made_here(function, node)
        return made and self._is_new(function, node, frozenset(), frozenset())

    def _is_made_here(self, function: Function, node: ast.expr) -> bool:
        """Tell whether a variable of a function holds what calls of no function of the project make."""
        held = self._reaching.of(function, node) if isinstance(node, ast.Name) else []
        calls = [value for value in held if isinstance(value, ast.Call)]
        project = self._project
        own = (c for c in calls if project.callees(c) and not project.constructed(c))
        return bool(calls) and len(calls) == len(held) and not any(own)

    def _is_apart(self, function: Function, node: ast.expr) -> bool:
        """Tell whether it is known what made an object, and neither that nor what it is a part of may be initialized."""
        module = function.module
        facts = self._project.values.facts(module, node)
        if not any(isinstance(fact, Instance | Made) for fact in facts):
            return False
        if is_of_network(function) or any(self._is_given(module, part) for part in outward(node)):
            return False
        return not self._holds(module, node)

    def _is_given(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an expression may be a network that is initialized."""
        values = self._project.values
        return bool(values.lineage(module, node) & values.origins(self._given))

    @cached_property
    def _near(self) -> Near:
        """Tells, quickly and never wrongly no, whether an object of an expression may be a network or hold one."""
        return self._project.values.near(self._given, held=True)

    def _is_new(
        self,
        function: Function,
        node: ast.expr,
        seen: frozenset[ast.AST],
        called: frozenset[Function],
    ) -> bool:
        """Tell whether nothing is initialized between what makes an object and where it is read; parameters of what is `called` are new."""
        if node in seen or isinstance(node, ast.Lambda):
            return False
        if self._is_definition(function.module, node) or not self.may_hold(function.module, node):
            return True
        seen |= {node}
        if isinstance(node, ast.Name):
            return self._is_bound_anew(function, node, seen, called)
        if isinstance(node, ast.Call):
            return self._makes(function, node, seen, called)
        if isinstance(node, ast.IfExp | ast.BoolOp | ast.List | ast.Tuple | ast.Dict | ast.Starred):
            parts = (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))
            return all(self._is_new(function, part, seen, called) for part in parts)
        return False

    def _is_bound_anew(
        self,
        function: Function,
        name: ast.Name,
        seen: frozenset[ast.AST],
        called: frozenset[Function],
    ) -> bool:
        if function.module.scopes.owner(name) is not function.scope:
            return False
        held = self._reaching.of(function, name)
        values = [value for value in held if isinstance(value, ast.expr)]
        if len(values) < len(held) or not held:
            taken = wholes(self._project, function, name) if set(held) == {None} else []
            if taken:
                return all(self._is_definition(function.module, whole) for whole in taken)
            return function in called and all(isinstance(value, ast.arg) for value in held)
        begins = self._begins(function)
        if any(may_follow(self._project, function, begin, name, values) for begin in begins):
            return False
        if any(not self._is_new(function, value, seen, called) for value in values):
            return False
        return all(self._is_new(function, given, seen, called) for given in _put(function, name))

    def _is_definition(self, module: Module, node: ast.AST) -> bool:
        """Tell whether an expression is a constant, a class or a function, or a table of such: ``NETWORKS[args.kind]``."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            if self._project.resolve(module, node) is not None:
                return True
            value = module.scopes.only_value(node)
            table = isinstance(value, ast.Dict | ast.List | ast.Tuple) and not _is_filled(
                module, node
            )
            return table and value is not None and self._is_definition(module, value)
        if isinstance(node, ast.Subscript):
            return self._is_definition(module, node.value)
        if isinstance(node, ast.Dict | ast.List | ast.Tuple):
            parts = (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))
            return all(self._is_definition(module, part) for part in parts)
        return False

    def _holds(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an object is a network that is initialized, or is seen to hold one."""
        values = self._project.values
        held = values.lineage(module, node) | values.inside(module, node)
        return bool(held & values.origins(self._given))

    def _makes(
        self,
        function: Function,
        call: ast.Call,
        seen: frozenset[ast.AST],
        called: frozenset[Function],
    ) -> bool:
        """Tell whether a call makes an object of what is new, or hands one on."""
        if call in self._begins(function):
            return False
        parts = [*all_given(call)]
        parts += [call.func.value] if isinstance(call.func, ast.Attribute) else []
        if not all(self._is_new(function, part, seen, called) for part in parts):
            return False
        callees = [] if self._project.constructed(call) else self._project.callees(call)
        if any(callee in called for callee in callees):
            return False
        return all(
            self._is_new(callee, value, seen, called | {callee})
            for callee in callees
            for value in returned(callee)
        )


def _put(function: Function, name: ast.Name) -> Iterator[ast.expr]:
    """Yield what a function puts into the object of a variable: as an attribute, or by a method of it."""
    tree = function.module.tree
    for node in function.module.scopes.spelt(function.scope, name.id):
        up = tree.parent(node)
        if not isinstance(up, ast.Attribute) or up.value is not node:
            continue
        user = tree.parent(up)
        if isinstance(user, ast.Assign) and up in user.targets:
            yield user.value
        elif isinstance(user, ast.Call) and user.func is up:
            yield from all_given(user)


def _is_filled(module: Module, name: ast.Name) -> bool:
    """Tell whether anything is put into a table after it is made, or may be: a method of it is called, or it is handed on."""
    tree = module.tree
    for node in module.scopes.spelt(module.scopes.owner(name), name.id):
        up = tree.parent(node)
        reads = isinstance(up, ast.Subscript) and up.value is node and isinstance(up.ctx, ast.Load)
        reads |= isinstance(up, ast.Attribute) and up.attr in _LOOKING
        if isinstance(node.ctx, ast.Load) and not reads:
            return True
    return False
