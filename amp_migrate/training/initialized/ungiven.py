"""Networks that `amp.initialize` was surely not given: O2 and O3 left them in fp32, and O1 cast them as all that ran."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.facts.paths import all_given, bottom, outward
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.forwarded import Received
from amp_migrate.project.rounds import may_follow
from amp_migrate.training.forwards.classes import is_of_network
from amp_migrate.training.initialized.anew import Anew, Begins
from amp_migrate.training.initialized.kept import kept
from amp_migrate.training.origins.reaching import Reaching
from amp_migrate.values.objects import Instance, Made
from amp_migrate.values.values import Near

Above = frozenset[tuple[Function, str]]


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
        self._anew = Anew(project, reaching, begins, self.may_hold)

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
            other = self._is_other(function, node, behind)
            yield Origin(function, node, other)
            if not (other or behind) and isinstance(node, ast.Name):
                fresh = self._anew.among(function, node)
                yield from (Origin(function, value, other=True) for value in fresh)
            return
        owner = self._owner(function, node)
        if (owner, name) not in above:
            above |= {(owner, name)}
            begins = self._begins(owner)
            if owner is not function:
                behind |= bool(begins)  # what runs later may run behind any of them
            behind |= any(may_follow(self._project, owner, begin, node) for begin in begins)
            function = owner
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

    def _owner(self, function: Function, node: ast.expr) -> Function:
        """Return the function whose variable a name is: one around, where it has none of that name."""
        module = function.module
        scope = module.scopes.owner(node) if isinstance(node, ast.Name) else function.scope
        return function if scope is None else module.functions.get(scope, function)

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
        return made and self._anew.is_new(function, node)

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

    def _holds(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an object is a network that is initialized, or is seen to hold one."""
        values = self._project.values
        held = values.lineage(module, node) | values.inside(module, node)
        return bool(held & values.origins(self._given))
