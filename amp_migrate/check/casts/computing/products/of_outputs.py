"""Products of what an initialized network gave, which was made fp32: O1 made it fp16 again, O2 and O3 left it; and early ones."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from amp_migrate.check.apex.disabling import States
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.apex.initialized import OFF, ON, Initialized
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.differing import CAST, UNCAST, differs, place, scales
from amp_migrate.check.casts.networks import METHODS, PRODUCTS, Networks
from amp_migrate.check.events.claims import IN_FP32, Claims
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.project import Function
from amp_migrate.training.bindings import operands
from amp_migrate.training.types.factors import factors


@dataclass(frozen=True, eq=False, slots=True)
class Operators:
    """Compares both texts, each product by its function and text."""

    old: Side
    new: Side
    networks: Networks

    def uncast(
        self,
        apex: Initialized,
        starts: Mapping[Function, States],
        native: Casting,
        begun: Mapping[Function, frozenset[Casts]],
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield the products by ``@`` of the new text that run without casts, where Apex had them on.

        And all those that run with them, where Apex had them off: before it began, say.
        """
        yield from self._early(apex, starts, native, begun)
        if self.networks.only_given:
            return
        wanted: dict[tuple[Key, str], States] = {}
        for function, start in starts.items():
            for node, states in apex.operators(function, start, ast.MatMult):
                factors = operands(function.module, node)
                if self.networks.halves(function, node, factors):
                    at = key(function), ast.unparse(node)
                    wanted[at] = wanted.get(at, frozenset()) | states
        for function in begun if wanted else ():
            if scales(self.new, function):
                continue
            for point in self.new.program.graph(function).points:
                product = point.node
                if isinstance(product, ast.BinOp | ast.AugAssign) and isinstance(
                    product.op, ast.MatMult
                ):
                    at = key(function), ast.unparse(product)
                    off = native.at(function, product, begun[function]) is Casts.OFF
                    if wanted.get(at) == ON and off:
                        yield differs(UNCAST, at, product)

    def _early(
        self,
        apex: Initialized,
        starts: Mapping[Function, States],
        native: Casting,
        begun: Mapping[Function, frozenset[Casts]],
    ) -> Iterator[tuple[Key, Difference]]:
        ran: dict[tuple[Key, str], States] = {}
        own = Casting(self.old.program, Facts())
        for function, start in starts.items():
            operators = apex.operators(function, start, ast.MatMult)
            for node, states in (*operators, *apex.calls(function, start)):
                if _factors(self.old, function, node) and own.here(function, node) is None:
                    at = key(function), ast.unparse(node)
                    ran[at] = ran.get(at, frozenset()) | states
        early = {at for at, states in ran.items() if states == OFF}
        for function in begun if early else ():
            for at, product in _products(self.new, function):
                if at in early and native.at(function, product, begun[function]) is Casts.ON:
                    yield differs(CAST, at, product)

    def recast(
        self,
        starts: Iterable[Function],
        native: Casting,
        begun: Mapping[Function, frozenset[Casts]],
        claims: Claims,
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield the products that the new text casts, where O2 or O3 left them in fp32 and no rule of the run says so."""
        if not self.networks.only_given:
            return
        left = {
            at
            for function in starts
            for at, node in _products(self.old, function)
            if any(
                self.networks.stays_wide(function, factor)
                for factor in _factors(self.old, function, node)
            )
            and not claims.note(IN_FP32, place(at, node))
        }
        for function in begun if left else ():
            for at, node in _products(self.new, function):
                if at in left and native.at(function, node, begun[function]) is Casts.ON:
                    yield differs(CAST, at, node)


def _products(
    side: Side, function: Function
) -> Iterator[tuple[tuple[Key, str], ast.expr | ast.stmt]]:
    """Yield the products of a function, each with what it is compared by."""
    for point in side.program.graph(function).points:
        node = point.node
        if isinstance(node, ast.expr | ast.stmt) and _factors(side, function, node):
            yield (key(function), ast.unparse(node)), node


def _factors(side: Side, function: Function, node: ast.AST) -> list[ast.expr]:
    return factors(side.project, function.module, node, PRODUCTS, METHODS) or []
