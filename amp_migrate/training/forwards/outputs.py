"""What the calls gave that a value comes from, in the type in which they gave it: shaped, collected or handed on since."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from functools import partial
from typing import NamedTuple

from amp_migrate.facts.closure import closure
from amp_migrate.facts.constants import number
from amp_migrate.project import Function, Project
from amp_migrate.project.once import once
from amp_migrate.training.beliefs import SHAPES
from amp_migrate.training.bindings import returned
from amp_migrate.training.origins.losses import Losses
from amp_migrate.training.origins.walk import Origin, Step, Walk

_JOINS = frozenset({"cat", "concat", "hstack", "stack", "vstack"})
_METHODS = SHAPES | frozenset(
    {"clone", "chunk", "cuda", "expand", "flip", "index_select", "items", "mean", "narrow", "pop", "relu", "repeat"}
    | {"abs", "clamp", "sigmoid", "split", "t", "tanh", "unbind", "values"}
)  # fmt: skip
_FUNCTIONAL = frozenset({"dropout", "leaky_relu", "relu"})
_SEQUENCES = frozenset({"list", "reversed", "sorted", "tuple"})
VIEWS = frozenset({"data", "H", "T", "mH", "mT"})
"""Attributes of a tensor that are another view of it."""


def outputs(
    project: Project,
    losses: Losses,
    function: Function,
    node: ast.expr,
    but: frozenset[ast.AST] = frozenset(),
) -> list[ast.Call]:
    """Return the calls whose results a value may be, or be made of without another type; nothing goes through what is in `but`."""
    walk = _walk(project, losses, but)
    return [n for n in walk.back([(function, node)])[1] if isinstance(n, ast.Call)]


def comes_to_backward(project: Project, losses: Losses, node: ast.AST) -> bool:
    """Tell whether casts in a node show in the loss of a backward pass, through what no gradient passes as well."""
    return any(
        losses.computes(project.function_of(module, call), call.func.value, node, cast=True)
        for module, call in losses.objects.method_calls.get("backward", ())
        if isinstance(call.func, ast.Attribute)
    )


class Under:
    """Tells which of those calls run under autocast on their way to a value: in `cast` nodes, or below a call that does.

    `under` are the functions that such calls run; what they run for other calls is not cast. No way goes through what is in `but`.
    """

    def __init__(
        self,
        project: Project,
        losses: Losses,
        cast: Set[ast.AST],
        under: Set[Function],
        but: frozenset[ast.AST] = frozenset(),
    ) -> None:
        self._but = but
        self._project = project
        self._losses = losses
        self._cast = cast
        self._under = under
        self._steps: dict[tuple[Function, ast.AST], Step] = {}

    def among(self, function: Function, node: ast.expr) -> set[ast.Call]:
        """Return the calls that run under autocast, of those whose results a value may be."""
        begun = _Spot(function, node, function in self._under)
        spots = closure([begun], self._onward)
        return {
            s.node
            for s in spots
            if isinstance(s.node, ast.Call) and (s.under or s.node in self._cast)
        }

    def ends(self, function: Function, node: ast.expr) -> Iterator[End]:
        """Yield what a value comes of in another type or out of sight; what a variable takes of a call stands for the call."""
        begun = _Spot(function, node, function in self._under)
        for spot in closure([begun], self._short_of_ends):
            made = self._closing(spot)
            if not made and any(self._onward(spot)):
                continue
            made = made or [spot]
            bare = [s.node for s in made if not s.under and s.node not in self._cast]
            calls = tuple(s.node for s in made if isinstance(s.node, ast.Call))
            yield End(spot.function, spot.node, calls, bare)

    def _short_of_ends(self, spot: _Spot) -> Iterator[_Spot]:
        closing = self._closing(spot)
        yield from (before for before in self._onward(spot) if before not in closing)

    def _closing(self, spot: _Spot) -> list[_Spot]:
        """Return the calls that give a variable its value, or a part of it, of which nothing is followed."""
        if not isinstance(spot.node, ast.Name):
            return []
        before = self._onward(spot)
        return [s for s in before if isinstance(s.node, ast.Call) and not any(self._onward(s))]

    def _onward(self, spot: _Spot) -> Iterator[_Spot]:
        place = spot.function, spot.node
        if place not in self._steps:
            self._steps[place] = _step(self._project, self._losses, self._but, *place)
        step = self._steps[place]
        for origin in step.onward:
            if origin.down is not None:
                under = spot.under or origin.down in self._cast
            else:
                near = origin.up is None and not origin.elsewhere
                under = spot.under if near else origin.function in self._under
            yield _Spot(origin.function, origin.node, under)
        for function, given in map(self._losses.handed_over, step.held):
            yield _Spot(function, given, function in self._under)


class End(NamedTuple):
    """Where a way back from a value ends, the calls that give it, and what of it runs under no autocast."""

    function: Function
    node: ast.AST
    calls: tuple[ast.Call, ...]
    bare: list[ast.AST]


class _Spot(NamedTuple):
    """A node on the way back from a value, and whether its function runs under autocast there."""

    function: Function
    node: ast.AST
    under: bool


@once
def _known(project: Project) -> dict[tuple[Losses, frozenset[ast.AST]], Walk]:
    return {}


def _walk(project: Project, losses: Losses, but: frozenset[ast.AST]) -> Walk:
    known = _known(project)
    if (losses, but) not in known:
        known[losses, but] = Walk(partial(_step, project, losses, but), losses.handed_over)
    return known[losses, but]


def _step(
    project: Project, losses: Losses, but: frozenset[ast.AST], where: Function, part: ast.AST
) -> Step:
    if part in but:
        return Step()
    if isinstance(part, ast.Call):
        if callees := project.callees(part):
            results = [Origin(c, value, down=part) for c in callees for value in returned(c)]
            return Step((), results)
        if not _keeps_type(project, where, part):
            return Step()
    onward = losses.bound(where, part)
    onward += [Origin(where, inner) for inner in _parts(project, where, part)]
    return Step((), onward, losses.put_in(where, part))


def _keeps_type(project: Project, where: Function, call: ast.Call) -> bool:
    name = project.external(where.module, call.func)
    if name is not None:
        package, _, name = name.rpartition(".")
        if package == "torch.nn.functional":
            return name in _FUNCTIONAL
        return package == "torch" and name in _JOINS | _METHODS
    if isinstance(call.func, ast.Name):
        return call.func.id in _SEQUENCES
    return isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS


def _parts(project: Project, where: Function, node: ast.AST) -> list[ast.expr]:
    """Return the parts of an expression that it may give, as they are."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) or project.external(where.module, node.func):
            return node.args[:1]
        return [node.func.value] if isinstance(node.func, ast.Attribute) else []
    if isinstance(node, ast.Attribute):
        return [node.value] if node.attr in VIEWS else []
    if isinstance(node, ast.UnaryOp):
        return [] if isinstance(node.op, ast.Not) else [node.operand]
    if isinstance(node, ast.Subscript) and (values := _greatest(node)) is not None:
        return [values]
    if isinstance(node, ast.Subscript | ast.Starred | ast.NamedExpr | ast.Await):
        return [node.value]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return node.elts
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        return [node.elt]
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, ast.DictComp):
        return [node.value]
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else []


def _greatest(node: ast.Subscript) -> ast.expr | None:
    """Return the tensor of which an expression takes the greatest or least values along an axis: ``x.max(0)[0]``."""
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    takes = call.func.attr in ("max", "min") and number(node.slice) == 0
    return call.func.value if takes else None
