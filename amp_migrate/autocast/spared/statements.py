"""What O2 and O3 left in fp32: they cast the networks that they are given, autocast every product in its blocks."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.autocast import bce
from amp_migrate.autocast.products import Products
from amp_migrate.autocast.spared.outside import Outside
from amp_migrate.facts.paths import all_given, tail, walk
from amp_migrate.placement.finding.networks import casts_these_alone
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import reached_by
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.beliefs import METHODS_WITHOUT_CASTS, SHAPES
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.origins.losses import Losses
from amp_migrate.training.region import Part, calls_of, run_by
from amp_migrate.training.types.settled import RETYPES

LATER = (ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda)
_SHAPES = SHAPES | {"t", "T"}
REDUCES = frozenset({"abs", "exp", "log", "max", "mean", "min", "norm", "pow", "sqrt", "sum"})


class Spared(NamedTuple):
    """A statement whose products Apex ran in fp32, and autocast runs in fp16; `node` is the first of them.

    `apart`: the source makes fp32 what is multiplied, and the statement can run without casts. `narrow` is what else must
    become fp32 then.
    """

    function: Function
    statement: ast.stmt
    node: ast.AST
    apart: bool = False
    narrow: tuple[ast.expr, ...] = ()


def spared(unit: Unit, parts: Iterable[Part]) -> list[Spared]:
    """Return what some parts multiply, in themselves and in what they call, that Apex multiplied in fp32."""
    return list(_Spared(unit, list(parts)).found())


class _Spared:
    """Looks for products in the code that some parts run."""

    def __init__(self, unit: Unit, parts: list[Part]) -> None:
        self._unit = unit
        self._project = unit.project
        self._parts = parts
        self._moving = moving(unit)
        self._products = Products(unit.project, sums=True)
        self._losses = program_of(unit.project).training.losses
        self._outside = Outside(unit, parts, self._nodes)

    def found(self) -> Iterator[Spared]:
        """Yield what can run apart, first what is made fp32 by hand, then what is left of products and other networks."""
        statements = self._statements.values()
        by_hand = [s for held in statements if (s := self._apart(*held, self._is_wide))]
        yield from by_hand
        done = {s.statement for s in by_hand}
        covered = self._run_by({n for s in done for n in walk(s) if isinstance(n, ast.Call)})
        for function, statement, nodes in statements:
            if statement in done or function in covered:
                continue
            if told := next((n for n in nodes if self._differs(function, n)), None):
                apart = self._outside.is_own(function) and self._apart(
                    function, statement, nodes, self._was_wide
                )
                yield apart or Spared(function, statement, told)

    @cached_property
    def _statements(self) -> dict[ast.stmt, tuple[Function, ast.stmt, list[ast.AST]]]:
        """The statements that multiply, by themselves or in what they call, each with what may do that."""
        found: dict[ast.stmt, tuple[Function, ast.stmt, list[ast.AST]]] = {}
        for function, node in self._nodes:
            product = bool(self._products.multiplied(function.module, node))
            if product or isinstance(node, ast.Call):
                statement = function.module.tree.statement(node)
                if bce.calls(self._unit, function.module, statement):
                    continue  # AMP115 runs it without casts
                found.setdefault(statement, (function, statement, []))[2].append(node)
        return found

    @cached_property
    def _nodes(self) -> list[tuple[Function, ast.AST]]:
        return nodes_of(self._project, self._parts)

    def _apart(
        self,
        function: Function,
        statement: ast.stmt,
        nodes: list[ast.AST],
        wide: Callable[[Function, ast.expr], bool],
    ) -> Spared | None:
        """Return a statement that multiplies what Apex had in fp32, and computes nothing else that casts change."""
        if not isinstance(statement, bce.STRAIGHT) or isinstance(statement, ast.AugAssign):
            return None
        if statement in self._moving:
            return None
        module, narrow, first = function.module, list[ast.expr](), None
        for node in nodes:
            if factors := self._products.multiplied(module, node):
                counts = any(wide(function, f) for f in factors)
                narrow += (f for f in factors if not self._is_wide(function, f))
            elif isinstance(node, ast.Call) and not self._is_plain(module, node):
                given = all_given(node)
                if not self._keeps(function, node, given):
                    return None
                counts = any(self._is_wide(function, g) for g in given)
                counts = counts and (self._products.run(node) or self._is_unseen(function, node))
            else:
                continue
            if any(isinstance(up, bce.NOT_ALWAYS) for up in module.tree.expressions(node)):
                return None
            first = first or (node if counts else None)
        if first is None or any(isinstance(n, LATER) for n in walk(statement)):
            return None
        kept = tuple(f for f in dict.fromkeys(narrow) if self._is_narrow(function, f))
        return Spared(function, statement, first, True, kept)

    def _keeps(self, function: Function, call: ast.Call, given: list[ast.expr]) -> bool:
        """Tell whether a call runs no network that is initialized, and gets nothing that may be fp16."""
        seen = self._project.callees(call) or self._is_unseen(function, call)
        if not seen or any(isinstance(g, ast.Starred) for g in given):
            return False
        if self._outside.is_given(function, call):
            return False
        return not any(self._is_narrow(function, g) for g in given if not _widens(g))

    def _is_unseen(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a statement keeps what an object out of sight computes, which no level but O1 has cast."""
        module = function.module
        if not casts_these_alone(self._unit) or not isinstance(call.func, ast.Attribute):
            return False
        if self._project.callees(call) or self._project.external(module, call.func) is not None:
            return False
        return (
            isinstance(module.tree.statement(call), ast.Assign)
            and self._unit.forwards.call(module, call) is Forward.NONE
        )

    def _is_plain(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call runs nothing of the project, and no network: a method of a tensor, or a function of torch."""
        if self._project.callees(call):
            return False
        name = self._project.external(module, call.func)
        if name is not None:
            return name.startswith("torch.") and not name.startswith("torch.nn.modules")
        if isinstance(call.func, ast.Attribute):
            return call.func.attr in METHODS_WITHOUT_CASTS | REDUCES | {"register_buffer"}
        return isinstance(call.func, ast.Name) and hasattr(builtins, call.func.id)

    def _differs(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a product or the forward of a network was in fp32 under Apex: what it was not given, or is made fp32."""
        if factors := self._products.multiplied(function.module, node):
            return any(self._was_wide(function, f) for f in factors)
        return self._outside.is_other(function, node)

    def _was_wide(self, function: Function, node: ast.expr) -> bool:
        """Tell whether Apex had a factor in fp32: made so by hand, or what a network handed out."""
        if self._is_wide(function, node):
            return True
        models = self._outside.models
        if not self._losses.networks(function, node, factor=True) & models:
            return False
        if self._outside.holds(function):
            return True
        made = self._losses.calls(function, node, cast=False)
        wide = not self._losses.networks(function, node, cast=True) & models
        return wide and not any(tail(call) in RETYPES for call in made)

    def _run_by(self, calls: set[ast.Call]) -> set[Function]:
        """Return the functions that run in some calls alone, of all that the regions make."""
        found = {f for c in calls for f in reached_by(self._project, c)}
        while True:
            kept = {
                f
                for f in found
                if all(
                    s.call in calls or s.call not in self._outside.made or s.function in found
                    for s in self._project.callers(f)
                )
            }
            if kept == found:
                return found
            found = kept

    def _is_wide(self, function: Function, node: ast.expr) -> bool:
        return is_made_wide(self._losses, function, node)

    def _is_narrow(self, function: Function, node: ast.expr) -> bool:
        """Tell whether an expression may be fp16 under autocast: what a network or a product gave, or code out of sight."""
        if self._losses.networks(function, node, cast=True) & self._outside.models:
            return True
        module_of = self._project.module_of
        return any(
            bool(self._products.multiplied(module_of(call), call))
            or (
                not (self._project.callees(call) or self._is_plain(module_of(call), call))
                and self._unit.forwards.call(module_of(call), call) is not Forward.NONE
            )
            for call in self._losses.calls(function, node, cast=True)
        )


def moving(unit: Unit) -> set[ast.stmt]:
    """Return the statements before which a loss that they compute inside a call gets one of its own."""
    return {function.module.tree.statement(node) for function, node in unit.inlined}


def nodes_of(project: Project, parts: Collection[Part]) -> list[tuple[Function, ast.AST]]:
    """Return the nodes that some parts run, in themselves and in what they call, each with its function."""
    own = [(function, n) for function, part in parts for n in walk(part)]
    run = run_by(project, calls_of(parts))
    return [*own, *((f, n) for f in sorted(run, key=place_of) for n in f.own_nodes)]


def _widens(node: ast.expr) -> bool:
    """Tell whether an expression is made fp32 where it stands: ``x.float()``, ``x.float().t()``."""
    while isinstance(node, ast.Call | ast.Attribute):
        func = node.func if isinstance(node, ast.Call) else node
        if not isinstance(func, ast.Attribute):
            return False
        if func.attr == "float" and isinstance(node, ast.Call):
            return True
        if func.attr not in _SHAPES:
            return False
        node = func.value
    return False


def is_made_wide(losses: Losses, function: Function, node: ast.expr) -> bool:
    """Tell whether an expression is made fp32 by hand, there or where the variable is bound."""
    if _widens(node):
        return True
    if isinstance(node, ast.Name):
        values = losses.reaching(function, node)
        return bool(values) and all(isinstance(v, ast.expr) and _widens(v) for v in values)
    return False


def multiplies_wide(unit: Unit, each: Spared) -> bool:
    """Tell whether the source makes fp32 all that a statement multiplies, whatever has run before."""
    products, module = Products(unit.project, sums=True), each.function.module
    losses = program_of(unit.project).training.losses
    factors = [f for node in walk(each.statement) for f in products.multiplied(module, node)]
    return bool(factors) and all(is_made_wide(losses, each.function, f) for f in factors)


def place_of(function: Function) -> tuple[str, int]:
    """Return where a function begins."""
    return function.module.path, function.node.lineno if function.node is not None else 0
