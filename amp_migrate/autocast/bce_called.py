"""Binary cross entropy in functions that run under the autocast of their callers."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from amp_migrate.autocast.bce import NAMES, STRAIGHT, is_bce
from amp_migrate.autocast.slicing.region import Region
from amp_migrate.facts.paths import path, walk
from amp_migrate.project import Class, Function, Module
from amp_migrate.training.contexts import in_autocast
from amp_migrate.unit.unit import Unit
from amp_migrate.values.objects import Made

# Methods and functions that give the dtype they get, and that autocast lets alone.
_KEEPS = frozenset(
    {
        "clamp", "clone", "contiguous", "cuda", "detach", "expand", "expand_as", "flatten", "float", "item", "masked_fill",
        "masked_fill_", "new_full", "new_ones", "new_zeros", "ones_like", "repeat", "reshape", "sigmoid", "size",
        "squeeze", "to", "type_as", "unsqueeze", "view", "view_as", "zeros_like",
    }
)  # fmt: skip
_ALIKE = frozenset(
    f"torch.nn.{name}Loss" for name in ("BCE", "BCEWithLogits", "Huber", "L1", "MSE", "SmoothL1")
)
_REDUCES = frozenset({"mean", "sum"})


@dataclass(frozen=True, eq=False, slots=True)
class Called:
    """A binary cross entropy in a function that a call of a region leads to; `sure` where it is seen to."""

    function: Function
    node: ast.Call
    call: ast.Call
    sure: bool

    @property
    def module(self) -> Module:
        """The file of the function."""
        return self.function.module

    @property
    def statement(self) -> ast.stmt:
        """The statement that computes it."""
        return self.module.tree.statement(self.node)


def called(unit: Unit, regions: Iterable[Region]) -> list[Called]:
    """Return the binary cross entropies of functions that regions call.

    A criterion that may be one, as of a GAN that can choose another, counts too.
    """
    found: dict[ast.Call, Called] = {}
    for call, function, sure in _functions(unit, regions):
        module = function.module
        for node in walk(function.scope) if NAMES.search(module.tree.text) else ():
            if isinstance(node, ast.Call) and is_bce(unit, module, node.func, maybe=True):
                if not in_autocast(unit.project, module, node):
                    found.setdefault(node, Called(function, node, call, sure))
    return list(found.values())


def inputs(node: ast.Call) -> list[ast.expr]:
    """Return what a binary cross entropy compares."""
    return [*node.args[:2], *(k.value for k in node.keywords if k.arg == "target")]


def _compiles(unit: Unit, module: Module, decorator: ast.expr) -> bool:
    """Tell whether a decorator makes a function one that is not run as Python: ``torch.jit.script``, ``numba.njit``."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = unit.project.external(module, node) or path(node) or ""
    return any(part.endswith("jit") for part in name.split("."))


def can_be_kept_out(unit: Unit, found: Called) -> bool:
    """Tell whether the statement of a binary cross entropy computes the same of fp32 inputs where casts are off.

    What it is given may only be taken apart there, and what it gives only be weighted and reduced; another loss that
    may stand in its place has to compare floating point numbers too.
    """
    facts = unit.project.values.facts(found.module, found.node.func)
    if not all(isinstance(fact, str | Made) for fact in facts) or any(
        isinstance(fact, Made) and fact.name not in _ALIKE for fact in facts
    ):
        return False
    tree = found.module.tree
    own = found.function.cls.node.decorator_list if found.function.cls is not None else []
    decorators = [*own, *(found.function.node.decorator_list if found.function.node else [])]
    if not found.sure or any(_compiles(unit, found.module, node) for node in decorators):
        return False
    if not isinstance(found.statement, STRAIGHT) or not found.node.args:
        return False
    given = {n for node in [*found.node.args, *found.node.keywords] for n in ast.walk(node)}
    making = {found.node, found.node.func}
    return all(
        node in making or _is_harmless(node, node in given)
        for node in ast.walk(found.statement)
        if isinstance(node, ast.Call | ast.Lambda | ast.Await | ast.Yield | ast.BinOp)
        and tree.statement(node) is found.statement
    )


def _is_harmless(node: ast.AST, given: bool) -> bool:
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.MatMult | ast.Pow)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in _KEEPS or (not given and node.func.attr in _REDUCES)


def _functions(unit: Unit, regions: Iterable[Region]) -> Iterator[tuple[ast.Call, Function, bool]]:
    """Yield the functions that run under the autocast of some regions, with a call that leads there, and if it is sure."""
    seen: set[Function] = set()
    calls = [
        (region.module, node)
        for region in regions
        for stmt in region.statements()
        for node in walk(stmt)
        if isinstance(node, ast.Call)
    ]
    for start in (_called, _named):
        for module, call in calls:
            stack = start(unit, module, call)
            while stack:
                function = stack.pop()
                if function not in seen:
                    seen.add(function)
                    yield call, function, start is _called
                    stack += _callees(unit, function)


def _callees(unit: Unit, function: Function) -> list[Function]:
    calls = [node for node in walk(function.scope) if isinstance(node, ast.Call)]
    return [callee for call in calls for callee in _called(unit, function.module, call)]


def _called(unit: Unit, module: Module, call: ast.Call) -> list[Function]:
    """Return the functions that a call runs, the `forward` of the networks and criteria among them."""
    classes = unit.project.values.instance_classes(module, call.func)
    forwards = [cls.method("forward") for cls in classes]
    return [*unit.project.callees(call), *(f for f in forwards if f is not None)]


def _named(unit: Unit, module: Module, call: ast.Call) -> list[Function]:
    """Return the forwards of the classes that a file names, one of which a network of unknown class may be."""
    if _called(unit, module, call) or not unit.forwards.is_network(module, call.func):
        return []
    found = (unit.project.resolve(module, node) for node in module.tree.nodes(ast.Name))
    classes = dict.fromkeys(meaning for meaning in found if isinstance(meaning, Class))
    return [f for cls in classes if (f := cls.method("forward")) is not None]
