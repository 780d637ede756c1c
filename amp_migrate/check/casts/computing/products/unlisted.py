"""Products of fp32 by functions that O1 had on no list: Apex left them in fp32, and so must the new text."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.differing import CAST, differs, place, scales
from amp_migrate.check.casts.networks import Networks
from amp_migrate.check.events.claims import IN_FP32, Claims
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.project import Function
from amp_migrate.training.types.unlisted import Ran, Unlisted

_At = tuple[Key, str]


@dataclass(frozen=True, eq=False)
class Unpatched:
    """Compares both texts, each product by its function and text, whatever is made fp32 in it."""

    old: Side
    new: Side
    networks: Networks

    def recast(
        self, native: Casting, entries: Iterable[Function], claims: Claims
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield the products that the new text casts, where Apex left them in fp32 and no rule of the run says so.

        `entries` are the functions of the new text that turn AMP on, and those which begin behind them.
        """
        left = set() if self.networks.only_given else self._left(claims)
        if not left:
            return
        names = {name for name, _ in left}
        begun = native.spread(entries, inside_networks=True)
        for function in begun:
            if key(function) not in names or scales(self.new, function):
                continue
            for call in self.new.program.graph(function).calls:
                if self._after.is_one(function.module, call) and at(function, call) in left:
                    if native.at(function, call, begun[function]) is Casts.ON:
                        yield differs(CAST, (key(function), ast.unparse(call)), call)

    def _left(self, claims: Claims) -> set[_At]:
        """Return the products that Apex left in fp32, but for those that a rule of the run speaks of."""
        left: set[_At] = set()
        for module, call in self.old.project.nodes(ast.Call):
            if self._before.is_one(module, call):
                function = self.old.project.function_of(module, call)
                found = at(function, call)
                if not claims.note(IN_FP32, place(found, call)):
                    ran = self._before.verdict(function, call).ran
                    left |= {found} if ran is Ran.WIDE else set()
        return left

    @cached_property
    def _before(self) -> Unlisted:
        return Unlisted(self.old.project, self.old.program.training.losses)

    @cached_property
    def _after(self) -> Unlisted:
        return Unlisted(self.new.project, self.new.program.training.losses)


def at(function: Function, call: ast.Call) -> _At:
    """Return what a product is compared by: its function, and its text without ``.float()``."""
    return key(function), ast.unparse(_Bare().visit(copy.deepcopy(call)))


class _Bare(ast.NodeTransformer):
    """Takes out what makes fp32."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        func = node.func
        plain = isinstance(func, ast.Attribute) and func.attr == "float" and not node.args
        return func.value if plain and isinstance(func, ast.Attribute) else node
