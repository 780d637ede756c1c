"""Powers, sums and the like of what an initialized network gave, which Apex and autocast both compute in fp32."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from amp_migrate.check.apex.disabling import States
from amp_migrate.check.apex.initialized import ON, Initialized
from amp_migrate.check.casts.callables import spelled
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.computing.tested import is_only_tested
from amp_migrate.check.casts.differing import UNCAST, differs, place, scales, told_above
from amp_migrate.check.casts.networks import Networks
from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.project import Function
from amp_migrate.training.types.compiled import is_compiled
from amp_migrate.training.types.known import types_of
from amp_migrate.training.types.wide import computed

_At = tuple[Key, str]


@dataclass(frozen=True, eq=False, slots=True)
class Wide:
    """Compares both texts, each computation by its function and text; `left` tells what computes with what Apex left in fp32."""

    old: Side
    new: Side
    networks: Networks
    left: Callable[[Function, Sequence[ast.expr]], bool]

    def uncast(
        self,
        apex: Initialized,
        starts: Mapping[Function, States],
        native: Casting,
        begun: Mapping[Function, frozenset[Casts]],
        claims: Claims,
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield what the new text computes without casts, where Apex was on and no rule of the run says so."""
        wanted: dict[_At, States] = {}
        for function, start in starts.items():
            for node, states in _computing(apex, function, start):
                if self._is_narrow(function, node) and not is_only_tested(function.module, node):
                    at = key(function), ast.unparse(node)
                    told = claims.uncast(place(at, node))
                    wanted[at] = wanted.get(at, frozenset()) | (states if not told else {None})
        names = {name for name, _ in wanted}

        def is_told(function: Function, call: ast.Call) -> bool:
            old = (f for f in self.old.functions.get(key(function), ()))
            spelt = [n for f in old for n in f.all_calls if spelled(n) == spelled(call)]
            at = key(function), spelled(call)
            return bool(spelt) and all(claims.uncast(place(at, n)) for n in spelt)

        for function in begun:
            if key(function) not in names or scales(self.new, function):
                continue
            for point in self.new.program.graph(function).points:
                if isinstance(point.node, ast.Call | ast.BinOp):
                    at = key(function), ast.unparse(point.node)
                    off = wanted.get(at) == ON and native.at(function, point.node, begun[function])
                    tested = is_only_tested(function.module, point.node)
                    if off is Casts.OFF and not tested:
                        own = native.here(function, point.node) is not None
                        ways = self.new.program, native, begun, function
                        if own or not told_above(*ways, is_told):
                            yield differs(UNCAST, at, point.node)

    def _is_narrow(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a node computes in fp32 of what a network gave."""
        training, project = self.old.program.training, self.old.project
        if is_compiled(project, function):
            return False
        types = types_of(project, training.losses)
        given = computed(project, function.module, node)
        if self.left(function, given):
            return False
        found = (
            training.losses.networks(function, part, narrow=True)
            for part in given
            if not types.is_wide(function, part)
        )
        return any(training.objects.origins(names) & self.networks.running for names in found)


def _computing(
    apex: Initialized, function: Function, start: States
) -> Iterator[tuple[ast.Call | ast.BinOp, States]]:
    """Yield the calls and powers of a function, with whether Apex may be on at each."""
    yield from apex.calls(function, start)
    for node, states in apex.operators(function, start, ast.Pow):
        if isinstance(node, ast.BinOp):
            yield node, states
