"""Outputs of networks that ``.cpu()`` copies or that go out of sight: O1 made those fp32 there, autocast leaves them fp16."""

from __future__ import annotations

import ast
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from amp_migrate.apex.sites import Kind
from amp_migrate.autocast.leaving.wide import Wide
from amp_migrate.facts.constants import number
from amp_migrate.placement.finding.networks import initialized
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module, Project
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.beliefs import SHAPES
from amp_migrate.training.forwards.outputs import Under, outputs
from amp_migrate.training.region import Region, nodes_in, run_in
from amp_migrate.training.types.floating import KEEPS_TYPE, floating_of
from amp_migrate.training.types.known import types_of

_WIDENS = frozenset({"double", "float", "item", "tolist"})
_PASSING = ("Dropout", "Identity", "Pad2d", "Pool1d", "Pool2d", "Pool3d", "ReLU", "Upsample")


class Copied(NamedTuple):
    """An ``x.cpu()`` of a function, and whether `x` surely has a floating type."""

    function: Function
    call: ast.Call
    floating: bool

    @property
    def given(self) -> ast.expr:
        """What is copied."""
        assert isinstance(self.call.func, ast.Attribute)
        return self.call.func.value


def copied(unit: Unit, regions: Iterable[Region], widened: frozenset[ast.AST]) -> Iterator[Copied]:
    """Yield each ``x.cpu()`` of what networks give in some regions, in the type in which they give it.

    What is `widened` gives fp32. What an older interface puts into fp16 itself was fp16 there, too.
    """
    if any(
        s.module.tree.older.written and unit.options[s].level == "O2"
        for s in unit.of(Kind.INITIALIZE)
    ):
        return
    regions = list(regions)
    wide = Wide(unit, _under(unit, regions, widened))
    floating = floating_of(unit.project, program_of(unit.project).training.losses)
    cast: dict[Function, set[ast.AST]] = {}
    for region in regions:
        nodes = cast.setdefault(region.function, set())
        nodes |= {node for stmt in region.statements() for node in ast.walk(stmt)}
    told: set[ast.Call] = set()
    for function, nodes in cast.items():
        given = _Outputs(unit, function, nodes, widened).given
        for call in function.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "cpu":
                if call in nodes and _is_wide(unit, function, call.func.value, nodes):
                    told.add(call)
                    continue
                if given(call.func.value, frozenset()):
                    told.add(call)
                    if _is_alike(unit.project, function.module, call):
                        continue
                    if not wide(function, call.func.value):
                        yield Copied(function, call, floating.copied(function, call))
    apart: dict[Function, list[ast.Call]] = {}
    for function, call in _elsewhere(unit, regions, widened):
        if call in told or _is_alike(unit.project, function.module, call):
            continue
        assert isinstance(call.func, ast.Attribute)
        if not wide(function, call.func.value):
            apart.setdefault(function, []).append(call)
    for function, calls in apart.items():
        every = all(floating.copied(function, call) for call in calls)  # alike, as for plots
        yield from (Copied(function, call, every) for call in calls)


def handed_out(unit: Unit, regions: Iterable[Region]) -> Iterator[tuple[Function, ast.Return]]:
    """Yield each function that code out of sight alone runs, and that returns to it what networks give in some regions."""
    losses, models = program_of(unit.project).training.losses, initialized(unit)
    types = types_of(unit.project, losses)
    for function in dict.fromkeys(region.function for region in regions):
        if not unit.project.escapes(function) or unit.project.callers(function):
            continue
        for node in function.own_nodes:
            given = node.value if isinstance(node, ast.Return) else None
            parts = given.elts if isinstance(given, ast.Tuple | ast.List) else [given]
            if isinstance(node, ast.Return) and any(
                losses.networks(function, part, cast=True, narrow=True) & models
                and not types.is_wide(function, part)
                for part in _flat(parts)
            ):
                yield function, node
                break


def _flat(parts: Iterable[ast.expr | None]) -> Iterator[ast.expr]:
    for part in parts:
        if isinstance(part, ast.Tuple | ast.List):
            yield from _flat(part.elts)
        elif part is not None:
            yield part


def _is_wide(unit: Unit, function: Function, node: ast.expr, cast: set[ast.AST]) -> bool:
    """Tell whether a value is surely no fp16, where all that it has of networks was bound in nodes that are `cast`."""
    losses = program_of(unit.project).training.losses
    if not types_of(unit.project, losses).is_wide(function, node):
        return False
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    runs = [call for call in calls if unit.forwards.is_network(function.module, call.func)]
    fed = {part for call in runs for part in ast.walk(call)}
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name) and n not in fed)
    made = [name for name in names if losses.networks(function, name)]
    return all(value in cast for part in made for value in losses.reaching(function, part))


def _is_alike(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a copy serves alike in fp16 and fp32: ``x.cpu().float()``, ``x.cpu().numpy() > 0.5``, ``np.argmax(x.cpu().numpy())``."""
    node: ast.expr = call
    while isinstance(up := module.tree.parent(node), ast.Attribute):
        if up.attr in _WIDENS:
            return True
        called = module.tree.parent(up)
        if up.attr not in SHAPES | {"numpy"} or not isinstance(called, ast.Call):
            return up.attr == "argmax" and _is_array(node)
        node = called
    if not _is_array(node):
        return False
    if isinstance(up, ast.Compare) and len(up.comparators) == 1:
        other = number(up.comparators[0] if up.left is node else up.left)
        return other is not None and _is_half(other)
    ranks = isinstance(up, ast.Call) and project.external(module, up.func) == "numpy.argmax"
    return ranks and isinstance(up, ast.Call) and up.args[:1] == [node]


def _is_array(node: ast.expr) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr == "numpy"


def _is_half(value: float) -> bool:
    """Tell whether fp16 has a number as it is."""
    try:
        return bool(struct.unpack("e", struct.pack("e", value))[0] == value)
    except OverflowError:
        return False


def _elsewhere(
    unit: Unit, regions: list[Region], widened: frozenset[ast.AST]
) -> Iterator[tuple[Function, ast.Call]]:
    """Yield each ``x.cpu()`` of what networks gave under autocast, wherever that came to."""
    project = unit.project
    losses, objects = (training := program_of(project).training).losses, training.objects
    ways = _under(unit, regions, widened)
    near = set(unit.near)
    for module, call in objects.method_calls.get("cpu", ()):
        if module not in near or call.args or project.callees(call):
            continue
        assert isinstance(call.func, ast.Attribute)
        function = project.function_of(module, call)
        run = [
            made
            for made in outputs(project, losses, function, call.func.value, widened)
            if unit.forwards.is_network(where := project.module_of(made), made.func)
            and not _keeps(project, where, made)
        ]
        if run and not ways.among(function, call.func.value).isdisjoint(run):
            yield function, call


def _under(unit: Unit, regions: list[Region], widened: frozenset[ast.AST]) -> Under:
    losses = program_of(unit.project).training.losses
    below = run_in(unit.project, regions)
    return Under(unit.project, losses, nodes_in(regions), below, widened)


def _keeps(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call is of layers of torch that give what they get in the type in which they get it."""
    made = project.values.made_by(module, call.func)
    return bool(made) and all(
        name.startswith("torch.nn.") and name.rpartition(".")[2].endswith(_PASSING) for name in made
    )


class _Outputs:
    """Follows the expressions of a function to what networks give under autocast."""

    def __init__(
        self, unit: Unit, function: Function, cast: set[ast.AST], widened: frozenset[ast.AST]
    ) -> None:
        self._widened = widened
        self._unit = unit
        self._function = function
        self._cast = cast

    def given(self, node: ast.expr, seen: frozenset[ast.AST]) -> bool:
        """Tell whether an expression may be an output, of the type of that."""
        if node in seen or node in self._widened:
            return False
        seen |= {node}
        if isinstance(node, ast.Call):
            return self._called(node, seen)
        if isinstance(node, ast.Subscript) or (
            isinstance(node, ast.Attribute) and node.attr == "data"
        ):
            return self.given(node.value, seen)
        if not isinstance(node, ast.Name):
            return False
        bound = program_of(self._unit.project).training.losses.reaching(self._function, node)
        held = [value for value in bound if isinstance(value, ast.expr)]
        return any(self.given(value, seen) for value in held)

    def _called(self, call: ast.Call, seen: frozenset[ast.AST]) -> bool:
        module = self._function.module
        if self._unit.forwards.is_network(module, call.func):
            return call in self._cast
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in KEEPS_TYPE:
            return False
        name = call.func.attr
        of_torch = self._unit.project.external(module, call.func) == f"torch.{name}"
        values = call.args[:1] if of_torch else [call.func.value]
        return any(self.given(value, seen) for value in values)
