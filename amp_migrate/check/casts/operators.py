"""Products by ``@`` of what an initialized network gave, which was made fp32: O1 made it fp16 again."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from amp_migrate.check.apex.disabling import States
from amp_migrate.check.apex.initialized import ON, Initialized
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.differing import UNCAST, differs, scales
from amp_migrate.check.casts.networks import Networks
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.project import Function
from amp_migrate.training.bindings import operands


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
        """Yield the products of the new text that run without casts, where Apex had them on."""
        wanted: dict[tuple[Key, str], States] = {}
        for function, start in starts.items():
            for node, states in apex.products(function, start):
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
