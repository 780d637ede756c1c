"""What O1 left in fp32 because it had it on no list, and autocast would multiply in fp16: ``torch.einsum`` of fp32 features."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from amp_migrate.autocast import bce
from amp_migrate.autocast.disabled import Disabled
from amp_migrate.autocast.products import Products
from amp_migrate.autocast.spared.statements import (
    LATER,
    REDUCES,
    Spared,
    moving,
    nodes_of,
    place_of,
)
from amp_migrate.facts.paths import tail, walk
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.beliefs import METHODS_WITHOUT_CASTS
from amp_migrate.training.forwards.classes import is_of_network
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.region import Part, calls_of, functions_run, run_by
from amp_migrate.training.types import wide
from amp_migrate.training.types.floats import Kind
from amp_migrate.training.types.unlisted import Ran, Unlisted, Verdict

_FLOATS = frozenset({Kind.HALF, Kind.WIDE})
_WIDE = wide.OF_TORCH | wide.OF_FUNCTIONAL
_OF_ANY = wide.SUMS | {"pow"}


class Left(NamedTuple):
    """What Apex surely left in fp32, and products of which that is not known, by functions that O1 had on no list."""

    sure: list[Spared]
    unsure: list[Spared]


def left_by_o1(unit: Unit, parts: Iterable[Part], disabled: Disabled) -> Left:
    """Return what some parts multiply, in themselves and in what they call, by functions that O1 had on no list."""
    found = list(_Found(unit, disabled).of(list(parts)))
    return Left([s for s, sure in found if sure], [s for s, sure in found if not sure])


class _Found:
    """Looks for such products in the code that some parts run."""

    def __init__(self, unit: Unit, disabled: Disabled) -> None:
        self._unit = unit
        self._project = unit.project
        self._disabled = disabled
        self._moving = moving(unit)
        self._unlisted = Unlisted(unit.project, program_of(unit.project).training.losses)
        self._products = Products(unit.project)

    def of(self, parts: list[Part]) -> Iterator[tuple[Spared, bool]]:
        """Yield the products that were not surely fp16, and whether they were surely fp32."""
        found: dict[ast.stmt, tuple[Function, list[ast.Call]]] = {}
        nodes = nodes_of(self._project, parts)
        for function, node in [*nodes, *self._unseen(parts, {f for f, _ in nodes})]:
            if isinstance(node, ast.Call) and self._unlisted.is_one(function.module, node):
                statement = function.module.tree.statement(node)
                calls = found.setdefault(statement, (function, []))[1]
                calls += [node] if node not in calls else []
        for statement, (function, calls) in found.items():
            if bce.calls(self._unit, function.module, statement) or self._disabled.runs(function):
                continue
            verdicts = {call: self._unlisted.verdict(function, call) for call in calls}
            told = {c.lineno: (c, v.ran) for c, v in verdicts.items() if v.ran is not Ran.HALF}
            apart = self._apart(function, statement, verdicts)
            if apart is not None:
                yield apart, True
                continue
            for call, ran in told.values():
                yield Spared(function, statement, call), ran is Ran.WIDE

    def _unseen(self, parts: list[Part], seen: set[Function]) -> Iterator[tuple[Function, ast.AST]]:
        """Yield what the modules of a program may run where it does not show which of them a part runs."""
        calls = [(m, c) for m, c in calls_of(parts) if self._is_hidden(m, c)]
        near = {module.path for module in self._unit.near} if calls else set[str]()
        methods = [
            f for f in self._project.functions() if f.module.path in near and is_of_network(f)
        ]
        below = run_by(self._project, ((f.module, call) for f in methods for call in f.calls))
        for function in dict.fromkeys([*methods, *sorted(below, key=place_of)]):
            if function not in seen:
                yield from ((function, node) for node in function.own_nodes)

    def _is_hidden(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call may run a network of the project, and it is not seen which."""
        if functions_run(self._project, module, call):
            return False
        if self._unit.forwards.call(module, call) is not Forward.NETWORK:
            return False
        made = self._project.values.made_by(module, call.func)
        return not made or not all(name.startswith("torch.nn.") for name in made)

    def _apart(
        self, function: Function, statement: ast.stmt, verdicts: dict[ast.Call, Verdict]
    ) -> Spared | None:
        """Return a statement all of whose products were in fp32, and that computes nothing else that casts change."""
        later = any(isinstance(n, LATER) for n in walk(statement))
        if later or statement in self._moving or not isinstance(statement, bce.STRAIGHT):
            return None
        narrow: list[ast.expr] = []
        for node in walk(statement):
            if isinstance(node, ast.Call) and node in verdicts:
                if verdicts[node].ran is not Ran.WIDE:
                    return None
                narrow += verdicts[node].narrow
                continue
            given = self._narrowed(function, node)
            if given is None:
                return None
            narrow += given
        return Spared(function, statement, next(iter(verdicts)), True, tuple(dict.fromkeys(narrow)))

    def _narrowed(self, function: Function, node: ast.AST) -> list[ast.expr] | None:
        """Return what a node computes in fp32 that may be fp16; None where casts change it otherwise."""
        module = function.module
        if self._products.multiplied(module, node):
            return None
        given = wide.computed(self._project, module, node)
        narrow: list[ast.expr] = []
        for each in given:
            kinds = {held.native for held in self._unlisted.types.of(function, each)}
            if kinds <= {Kind.WIDE} or (isinstance(node, ast.BinOp) and kinds <= {Kind.NUMBER}):
                continue
            any_other = isinstance(node, ast.Call) and tail(node) not in _OF_ANY
            if not kinds <= (_FLOATS | {Kind.UNKNOWN} if any_other else _FLOATS):
                return None
            narrow.append(each)
        if isinstance(node, ast.Call) and not given:
            return narrow if self._is_plain(function, node) and tail(node) not in _WIDE else None
        return narrow

    def _is_plain(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call runs nothing of the project, and no network: a method of a tensor, or a function of torch."""
        module = function.module
        if self._project.callees(call):
            return False
        name = self._project.external(module, call.func)
        if name is not None:
            return name.startswith(("torch.", "math.")) and not name.startswith("torch.nn.modules")
        if isinstance(call.func, ast.Attribute):
            kinds = {held.native for held in self._unlisted.types.of(function, call.func.value)}
            return call.func.attr in METHODS_WITHOUT_CASTS | REDUCES or kinds <= _FLOATS
        return isinstance(call.func, ast.Name) and hasattr(builtins, call.func.id)
