"""What is computed behind the blocks, for no backward, of what networks gave there: Apex had it in fp32."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.apex.levels import OF_GIVEN
from amp_migrate.apex.sites import Kind as SiteKind
from amp_migrate.autocast.leaving.together import root
from amp_migrate.facts.paths import all_given
from amp_migrate.placement.finding.networks import casts_these_alone, initialized
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.forwards.classes import is_of_network
from amp_migrate.training.forwards.outputs import Under, comes_to_backward, outputs
from amp_migrate.training.region import Region, nodes_in, run_in
from amp_migrate.training.types.floating import floating_of
from amp_migrate.training.types.floats import Kind
from amp_migrate.training.types.known import types_of

_ARITHMETIC = (ast.Add, ast.Div, ast.Mult, ast.Sub)
_BY_O1 = frozenset({"std", "var"})
"""What O1 alone computed in fp32."""
_COMPUTES = _BY_O1 | {
    "cdist", "cos", "erf", "gelu", "log1p", "log_softmax", "logsigmoid", "logsumexp", "mean", "sigmoid", "sin", "softmax",
    "sqrt", "tanh",
}  # fmt: skip
"""What outside of autocast computes in the type that it is given."""
NOT_BY_NATIVE = frozenset({"logsigmoid", "logsumexp", "sigmoid", "std", "tanh", "var"})
"""What does so in its blocks as well."""
_PACKAGES = ("torch", "torch.nn.functional", "torch.special")
_IN_BLOCKS = frozenset({"torch.nn.functional.log_softmax", "torch.nn.functional.softmax"})


class Computed(NamedTuple):
    """What must be made fp32 that is `given` to what computes with it, the node that is `used`."""

    function: Function
    given: ast.expr
    used: ast.AST


def is_high(unit: Unit) -> bool:
    """Tell whether O2 or O3 may be on, which handed out fp32."""
    return any(unit.options[site].levels & OF_GIVEN for site in unit.of(SiteKind.INITIALIZE))


def computed(unit: Unit, regions: Iterable[Region]) -> list[Computed]:
    """Return what must be made fp32.

    O2 and O3 handed out fp32; O1 made fp32 of what it had on its list, and of fp16 beside an fp32 tensor without dimensions.
    """
    if any(site.module.tree.older.written for site in unit.of(SiteKind.INITIALIZE)):
        return []
    return list(Computing(unit, list(regions), is_high(unit)).found())


class Computing:
    """Looks through the functions of the files that train or evaluate."""

    def __init__(self, unit: Unit, regions: list[Region], high: bool) -> None:
        self._unit = unit
        self._project = unit.project
        self._high = high
        self._cast = nodes_in(regions)
        self._under = run_in(unit.project, regions)
        self._losses = program_of(unit.project).training.losses
        self._types = types_of(unit.project, self._losses)
        self._scores = floating_of(unit.project, self._losses, scores=True)
        self._models = initialized(unit)
        self._used: dict[tuple[Function, str], bool] = {}

    def found(self) -> Iterator[Computed]:
        """Yield what must become fp32, each once."""
        told: set[ast.expr] = set()
        for function, node in self._candidates:
            for given in self._narrow(function, node):
                if given not in told and not self._trains(node):
                    told.add(given)
                    yield Computed(function, given, node)
                    break  # fp32 and fp16 give fp32

    def _trains(self, node: ast.AST) -> bool:
        """Tell whether what a node computes comes to a loss that trains, where O1 may be on and left it in fp16."""
        if not self._high or casts_these_alone(self._unit):
            return False
        return comes_to_backward(self._project, self._losses, node)

    @cached_property
    def _candidates(self) -> list[tuple[Function, ast.AST]]:
        near = set(self._unit.near)
        return [
            (function, node)
            for function in self._project.functions()
            if function.module in near and self._is_seen(function)
            for node in function.own_nodes
            if self._computes(function.module, node) and self._is_asked(function.module, node)
        ]

    def _is_seen(self, function: Function) -> bool:
        """Tell whether a function runs outside of the networks."""
        return function not in self._under and not is_of_network(function)

    def _is_asked(self, module: Module, node: ast.AST) -> bool:
        """Tell whether a node computes no loss, and may give fp16 of what is fp16."""
        if node in self._losses.computing:
            return False
        return node not in self._cast or self._stays_narrow(module, node)

    def _computes(self, module: Module, node: ast.AST) -> bool:
        """Tell whether a node may compute in the type of what it is given."""
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, _ARITHMETIC)
        if not isinstance(node, ast.Call) or node in self._unit.gone:
            return False
        return bool(self._run(module, node)) or self._operand(module, node) is not None

    def _run(self, module: Module, call: ast.Call) -> list[Function]:
        """Return the functions that a call runs, and that may compute with what it gives."""
        return self._project.callees(call)

    def _stays_narrow(self, module: Module, node: ast.AST) -> bool:
        """Tell whether a call in a block gives fp16 as well, at a level that had fp32 in any case."""
        if not casts_these_alone(self._unit) or not isinstance(node, ast.Call):
            return False
        name = self._project.external(module, node.func) or ast.unparse(node.func)
        known = self._operand(module, node) is not None
        return known and name.rpartition(".")[2] in NOT_BY_NATIVE

    @property
    def _functions(self) -> frozenset[str]:
        """The functions and methods of torch that compute in the type of what they are given."""
        return _COMPUTES if self._high else _BY_O1

    def _operand(self, module: Module, call: ast.Call) -> ast.expr | None:
        """Return what a function or method of torch computes of in its type."""
        names = self._functions
        name = self._project.external(module, call.func)
        if name is not None:
            package, _, last = name.rpartition(".")
            known = package in _PACKAGES and last in names and name not in _IN_BLOCKS
            return call.args[0] if known and call.args else None
        if isinstance(call.func, ast.Attribute) and call.func.attr in names:
            return call.func.value
        return None

    def _narrow(self, function: Function, node: ast.AST) -> Iterator[ast.expr]:
        """Yield the operands of a node that are fp16 there now and were fp32, of which it computes in fp16."""
        for given in self._operands(function, node, asked=self._is_narrow):
            if not self._comes_of(function, given, function.parameters.names):
                yield given  # of those the calls that hand them in tell

    def _is_narrow(self, function: Function, node: ast.expr) -> bool:
        return self._is_half(function, node) and self._is_score(function, node)

    def _operands(
        self, function: Function, node: ast.AST, asked: Callable[[Function, ast.expr], bool]
    ) -> Iterator[ast.expr]:
        """Yield what a node computes of, in the type of that if it is fp16, where something holds of that."""
        if isinstance(node, ast.BinOp):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if asked(function, one) and self._leaves(function, other):
                    yield one
        elif isinstance(node, ast.Call):
            if callees := self._run(function.module, node):
                for given in all_given(node):
                    if asked(function, given) and self._is_used(node, callees, given):
                        yield given
            elif (operand := self._operand(function.module, node)) is not None:
                if asked(function, operand):
                    yield operand

    def _leaves(self, function: Function, other: ast.expr) -> bool:
        """Tell whether fp16 beside something stays so, where Apex had it in fp32."""
        held = self._types.of(function, other)
        if not self._high:
            return all(each.bare and each.apex is Kind.WIDE for each in held)
        narrow = any(each.bare or each.native is Kind.HALF for each in held)
        return narrow or self._is_half(function, other)

    def _is_used(self, call: ast.Call, callees: list[Function], given: ast.expr) -> bool:
        """Tell whether all the functions that a call runs compute with something that it gives."""
        if any(f in self._under or is_of_network(f) for f in callees):
            return False
        names = self._names(call, callees, given)
        return len(names) == len(callees) and all(self._uses(*each) for each in names)

    def _names(
        self, call: ast.Call, callees: list[Function], given: ast.expr
    ) -> list[tuple[Function, str]]:
        """Return the parameters of some functions for which a call gives something."""
        return [
            (callee, name)
            for callee in callees
            for name, value in self._project.given(call, callee).items()
            if value is given
        ]

    def _uses(self, function: Function, name: str) -> bool:
        """Tell whether a function computes with what it gets for a parameter."""
        if (function, name) not in self._used:
            self._used[function, name] = False  # as long as it is asked
            self._used[function, name] = any(
                True
                for node in function.own_nodes
                if isinstance(node, ast.BinOp | ast.Call) and self._computes(function.module, node)
                for _ in self._operands(
                    function, node, asked=lambda f, given: self._comes_of(f, given, [name])
                )
            )
        return self._used[function, name]

    def _comes_of(self, function: Function, node: ast.expr, names: Collection[str]) -> bool:
        """Tell whether an operand is one of some parameters, shaped or a part of it."""
        name = root(node)
        values = self._losses.reaching(function, name) if name is not None else []
        return any(isinstance(value, ast.arg) and value.arg in names for value in values)

    def _is_half(self, function: Function, node: ast.expr) -> bool:
        """Tell whether a value is what a network gave under autocast, in the type in which it gave it."""
        losses = self._losses
        if not losses.networks(function, node, cast=True, narrow=True) & self._models:
            return False
        made = outputs(self._project, losses, function, node, self._sinks)
        forwards, module_of = self._unit.forwards, self._project.module_of
        run = [call for call in made if forwards.is_network(module_of(call), call.func)]
        return bool(run) and not self._ways.among(function, node).isdisjoint(run)

    @cached_property
    def _ways(self) -> Under:
        return Under(self._project, self._losses, self._cast, self._under, self._sinks)

    @cached_property
    def _sinks(self) -> frozenset[ast.AST]:
        """The calls that compute, behind which values have been made fp32."""
        return frozenset(
            node
            for function, node in self._candidates
            if isinstance(node, ast.Call)
            if self._operand(function.module, node) is not None
        )

    def _is_score(self, function: Function, node: ast.expr) -> bool:
        """Tell whether a value surely is fp16, and no loss that a network computes: those are fp32."""
        held = {(each.apex, each.native) for each in self._types.of(function, node)}
        if held <= {(Kind.HALF, Kind.HALF)}:
            return True
        return not any(Kind.WIDE in each for each in held) and self._scores(function, node)
