"""Whether networks have been made since anything was initialized."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from typing import Any

from amp_migrate.facts.paths import all_given
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.rounds import may_follow
from amp_migrate.training.bindings import returned
from amp_migrate.training.initialized.filled import is_filled, put_into
from amp_migrate.training.origins.reaching import Given, Reaching

Begins = Callable[[Function], Collection[ast.AST]]
"""Gives what initializes in a function, by itself or in what it calls."""

_NONE: frozenset[Any] = frozenset()


class Anew:
    """Answers for the expressions of a project; `may_hold` tells which may hold a network that is initialized."""

    def __init__(
        self,
        project: Project,
        reaching: Reaching,
        begins: Begins,
        may_hold: Callable[[Module, ast.expr], bool],
    ) -> None:
        self._project = project
        self._reaching = reaching
        self._begins = begins
        self._may_hold = may_hold

    def is_new(self, function: Function, node: ast.expr) -> bool:
        """Tell whether nothing is initialized between what makes an object and where it is read."""
        return self._is_new(function, node, _NONE, _NONE)

    def among(self, function: Function, name: ast.Name) -> Iterator[ast.expr]:
        """Yield what is new among several networks that a variable may hold where it is read, as tests decide."""
        module, project = function.module, self._project
        own = module.scopes.owner(name) is function.scope and self._may_hold(module, name)
        held = self._reaching.given(function, name) if own else []
        values = [each.value for each in held if isinstance(each.value, ast.expr)]
        for each in held if len(held) > 1 else ():
            value = each.value
            if not isinstance(value, ast.expr) or not self._gives_new(function, each, _NONE, _NONE):
                continue
            since = [b for b in self._begins(function) if may_follow(project, function, value, b)]
            if not any(may_follow(project, function, b, name, values) for b in since):
                yield value

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
        if self._is_definition(function.module, node):
            return True
        shown = isinstance(node, ast.List | ast.Tuple)
        if not shown and not self._may_hold(function.module, node):
            return True
        seen |= {node}
        if isinstance(node, ast.Name):
            return self._is_bound_anew(function, node, seen, called)
        if isinstance(node, ast.Call):
            return self._makes(function, node, seen, called)
        if isinstance(node, ast.Subscript):
            return self._are_new(function, node.value, seen, called)
        if isinstance(node, ast.Attribute) and node.attr == "module":  # a wrapper goes
            return self._is_new(function, node.value, seen, called)
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
        given = self._reaching.given(function, name)
        values = [each.value for each in given if isinstance(each.value, ast.expr)]
        handed = [each for each in given if isinstance(each.value, ast.arg)]
        if not given or len(values) + len(handed) < len(given):
            return False
        if handed and function not in called:
            return False
        begins = self._begins(function)
        if any(may_follow(self._project, function, begin, name, values) for begin in begins):
            return False
        made = [each for each in given if each not in handed]
        if not all(self._gives_new(function, each, seen, called) for each in made):
            return False
        put = put_into(function, name)
        return all(self._is_new(function, each, seen, called) for each in put)

    def _gives_new(
        self, function: Function, each: Given, seen: frozenset[ast.AST], called: frozenset[Function]
    ) -> bool:
        """Tell the same of what binds a variable."""
        if not isinstance(each.value, ast.expr):
            return False
        tells = self._are_new if each.apart else self._is_new
        return tells(function, each.value, seen, called)

    def _are_new(
        self,
        function: Function,
        whole: ast.expr,
        seen: frozenset[ast.AST],
        called: frozenset[Function],
    ) -> bool:
        """Tell the same of whatever may be taken out of an expression: of a call, of each of its results."""
        if self._is_definition(function.module, whole):
            return True
        if whole in seen:
            return False
        if isinstance(whole, ast.Subscript):
            return self._are_new(function, whole.value, seen, called)
        if isinstance(whole, ast.Call):
            return self._makes(function, whole, seen | {whole}, called)
        if not isinstance(whole, ast.Name) or is_filled(function.module, whole):
            return False
        return self._is_bound_anew(function, whole, seen | {whole}, called)

    def _is_definition(self, module: Module, node: ast.AST) -> bool:
        """Tell whether an expression is a constant, a class or a function, or a table of such: ``NETWORKS[args.kind]``."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            if self._project.resolve(module, node) is not None:
                return True
            value = module.scopes.only_value(node)
            table = isinstance(value, ast.Dict | ast.List | ast.Tuple) and not is_filled(
                module, node
            )
            return table and value is not None and self._is_definition(module, value)
        if isinstance(node, ast.Subscript):
            return self._is_definition(module, node.value)
        if isinstance(node, ast.Dict | ast.List | ast.Tuple):
            parts = (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))
            return all(self._is_definition(module, part) for part in parts)
        return False

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
