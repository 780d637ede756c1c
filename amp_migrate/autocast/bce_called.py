"""Binary cross entropy in functions that run under the autocast of their callers."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from amp_migrate.autocast.bce import NAMES, NOT_ALWAYS, STRAIGHT, is_bce
from amp_migrate.facts.closure import spread
from amp_migrate.facts.paths import all_given, argument, path, walk
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Class, Function, Module
from amp_migrate.training.beliefs import SHAPES
from amp_migrate.training.contexts import in_autocast
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.region import functions_run, run_below
from amp_migrate.values.objects import Made

# Methods and functions that give the dtype they get, and that autocast lets alone.
_KEEPS = SHAPES | {
    *("clamp", "clone", "cuda", "expand", "expand_as", "float", "item", "masked_fill", "masked_fill_", "new_full"),
    *("new_ones", "new_zeros", "ones_like", "repeat", "sigmoid", "size", "to", "type_as", "view_as", "zeros_like"),
    *("abs", "abs_", "add_", "clamp_", "div_", "mul_", "neg", "neg_", "relu", "relu_", "sigmoid_", "sqrt", "sqrt_"),
    *("sub_", "tanh", "tanh_"),
}  # fmt: skip
_ALIKE = frozenset(
    f"torch.nn.{name}Loss" for name in ("BCE", "BCEWithLogits", "Huber", "L1", "MSE", "SmoothL1")
)
_REDUCES = frozenset({"mean", "sum"})
_COMPUTES = ast.Call | ast.Lambda | ast.Await | ast.Yield | ast.BinOp


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


def called(unit: Unit, calls: Iterable[tuple[Module, ast.Call]]) -> list[Called]:
    """Return the binary cross entropies of functions that calls lead to which run under autocast.

    A criterion that may be one, as of a GAN that can choose another, counts too.
    """
    found: dict[ast.Call, Called] = {}
    for call, function, sure in _functions(unit, list(calls)):
        module = function.module
        for node in function.own_nodes if NAMES.search(module.tree.text) else ():
            if isinstance(node, ast.Call) and is_bce(unit, module, node.func, maybe=True):
                if not in_autocast(unit.project, module, node):
                    found.setdefault(node, Called(function, node, call, sure))
    return list(found.values())


def inputs(node: ast.Call) -> list[ast.expr]:
    """Return what a binary cross entropy compares."""
    named = ("input", "target")
    return [g for at, name in enumerate(named) if (g := argument(node, name, at)) is not None]


def _compiles(unit: Unit, module: Module, decorator: ast.expr) -> bool:
    """Tell whether a decorator makes a function one that is not run as Python: ``torch.jit.script``, ``numba.njit``."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = unit.project.external(module, node) or path(node) or ""
    return any(part.endswith("jit") for part in name.split("."))


def can_be_kept_out(unit: Unit, together: Sequence[Called]) -> bool:
    """Tell whether a statement of binary cross entropy computes the same of fp32 inputs where casts are off.

    What it is given may only be taken apart there, and what it gives only be weighted and reduced.
    """
    if not all(_can_change(unit, each) for each in together):
        return False
    tree, statement = together[0].module.tree, together[0].statement
    nodes = [each.node for each in together]
    given = {n for node in nodes for part in [*node.args, *node.keywords] for n in ast.walk(part)}
    plain = {
        n
        for each in together
        for part in inputs(each.node)
        if is_plain(unit, each, part)
        for n in ast.walk(part)
    }
    making = {part for node in nodes for part in (node, node.func)} | plain
    return all(
        node in making or _is_harmless(node, node in given)
        for node in ast.walk(statement)
        if isinstance(node, _COMPUTES) and tree.statement(node) is statement
    )


def can_be_computed_before(unit: Unit, together: Sequence[Called]) -> bool:
    """Tell whether the binary cross entropies of a statement can be computed in statements of their own before it.

    What it compares is computed before the rest of the statement then: that may not run a network as well, unless
    what is compared comes of operations that draw no random numbers and change nothing.
    """
    module, statement = together[0].module, together[0].statement
    own = {part for each in together for part in ast.walk(each.node)}
    others = [n for n in walk(statement) if isinstance(n, ast.Call) and n not in own]
    nested = any(
        each.node in ast.walk(other.node)
        for each in together
        for other in together
        if each is not other
    )
    return (
        not nested
        and all(_can_change(unit, each) and _always_runs(each) for each in together)
        and all(_taken_along(each.node) for each in together)
        and (
            all(unit.forwards.call(module, node) is not Forward.NETWORK for node in others)
            or all(_is_pure(unit, module, part) for each in together for part in inputs(each.node))
        )
    )


def _is_pure(unit: Unit, module: Module, node: ast.expr) -> bool:
    """Tell whether an expression only calls operations of torch that change nothing."""
    for part in ast.walk(node):
        if isinstance(part, ast.Lambda | ast.Await | ast.Yield | ast.NamedExpr):
            return False
        if isinstance(part, ast.Call):
            name = unit.project.external(module, part.func) or ""
            method = isinstance(part.func, ast.Attribute) and not part.func.attr.endswith("_")
            runs = unit.project.callees(part) or unit.forwards.call(module, part) > Forward.NONE
            if runs or not (method or name.startswith("torch.")):
                return False
    return True


def is_plain(unit: Unit, found: Called, node: ast.expr) -> bool:
    """Tell whether casts do not matter to what a call is given."""
    return taken_apart(node) or unit.forwards.indifferent.part(found.function, node)


def taken_apart(node: ast.expr) -> bool:
    """Tell whether an expression only takes apart what it is given, so that casts do not matter to it."""
    computing = (part for part in ast.walk(node) if isinstance(part, _COMPUTES))
    return all(_is_harmless(part, given=True) for part in computing)


def _can_change(unit: Unit, found: Called) -> bool:
    """Tell whether a call is seen to run in plain Python, and compares floating point numbers whatever it may be."""
    facts = unit.project.values.facts(found.module, found.node.func)
    if not all(isinstance(fact, str | Made) for fact in facts) or any(
        isinstance(fact, Made) and fact.name not in _ALIKE for fact in facts
    ):
        return False
    own = found.function.cls.node.decorator_list if found.function.cls is not None else []
    decorators = [*own, *(found.function.node.decorator_list if found.function.node else [])]
    if not found.sure or any(_compiles(unit, found.module, node) for node in decorators):
        return False
    return isinstance(found.statement, STRAIGHT) and bool(found.node.args)


def _always_runs(found: Called) -> bool:
    """Tell whether a call runs wherever its statement does."""
    between = found.module.tree.expressions(found.node)
    return not any(isinstance(up, NOT_ALWAYS) for up in between)


def _taken_along(node: ast.Call) -> bool:
    """Tell whether what a call is given beside what it compares may be computed without casts."""
    compared = inputs(node)
    rest = all_given(node)
    return all(part in compared or taken_apart(part) for part in rest)


def _is_harmless(node: ast.AST, given: bool) -> bool:
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.MatMult | ast.Pow)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in _KEEPS or (not given and node.func.attr in _REDUCES)


def _functions(
    unit: Unit, calls: Sequence[tuple[Module, ast.Call]]
) -> Iterator[tuple[ast.Call, Function, bool]]:
    """Yield the functions that run in some calls, with the one that leads there, and if it is sure."""
    seen: set[Function] = set()
    project = unit.project
    for sure, start in ((True, partial(functions_run, project)), (False, partial(_named, unit))):
        for module, call in calls:
            for function in spread(start(module, call), partial(run_below, project)):
                if function not in seen:
                    seen.add(function)
                    yield call, function, sure


def _named(unit: Unit, module: Module, call: ast.Call) -> list[Function]:
    """Return the forwards of the classes that a file names, one of which a network of unknown class may be."""
    if functions_run(unit.project, module, call) or not unit.forwards.is_network(module, call.func):
        return []
    found = (unit.project.resolve(module, node) for node in module.tree.nodes(ast.Name))
    classes = dict.fromkeys(meaning for meaning in found if isinstance(meaning, Class))
    return [f for cls in classes if (f := cls.method("forward")) is not None]
