"""What the program makes fp16 itself, beside what stays fp32 now: weights that are compared with it, and layers that get it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import all_given, tail
from amp_migrate.plan.model import Decision, Status
from amp_migrate.project import Function, Module, Project
from amp_migrate.protocol.code.program import program_of
from amp_migrate.rules.autocast.ungiven import high, levels
from amp_migrate.rules.base import Context, Rule, decision
from amp_migrate.training.beliefs import WEIGHTS
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.region import Region

_COMPARE = frozenset({"allclose", "eq", "equal", "isclose", "ne"})
_HALVES = frozenset({"torch.HalfTensor", "torch.cuda.HalfTensor", "torch.float16", "torch.half"})


def compared(context: Context, rule: Rule) -> Iterator[Decision]:
    """Say of comparisons of weights with what the program makes fp16 that both are of one type no more."""
    if not (sites := high(context)):
        return
    for module in context.unit.near:
        for node in module.tree.nodes(ast.Compare, ast.Call):
            sides = list(_sides(context.unit.project, module, node))
            function = context.unit.project.function_of(module, node)
            for one, other in (sides, sides[::-1]) if len(sides) == 2 else ():
                if _is_weight(one) and _is_halved(context, function, other):
                    where, _ = levels(context, sites)
                    text = module.tree.segment(one)
                    message = f"{where}, `{text}` was fp16, as what it is compared with; it stays fp32 now, and is equal no more where fp16 rounds it"
                    advice = f"compare `{text}.half()`"
                    yield decision(rule, Status.NOTE, module, node, message, advice=advice)


def _sides(project: Project, module: Module, node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a node compares for being the same."""
    if isinstance(node, ast.Compare):
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            yield from (node.left, *node.comparators)
    elif isinstance(node, ast.Call) and tail(node) in _COMPARE:
        name = project.external(module, node.func)
        if name is None and isinstance(node.func, ast.Attribute) and not project.callees(node):
            yield node.func.value
        if name is None or name.startswith("torch."):
            yield from node.args[: 2 if name else 1]


def _is_weight(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    return isinstance(node, ast.Attribute) and node.attr in WEIGHTS


def _is_halved(context: Context, function: Function, node: ast.expr) -> bool:
    """Tell whether the program makes something fp16, there or where a variable or an attribute is bound."""
    if _halves(context.unit.project, function.module, node):
        return True
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    origins = program_of(context.unit.project).training.losses.bound(function, node)
    return any(
        isinstance(o.node, ast.expr) and _halves(context.unit.project, o.function.module, o.node)
        for o in origins
    )


def _halves(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an expression is ``x.half()`` or ``x.to(torch.float16)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "half":
        return not node.args and not project.callees(node)
    given = (*node.args, *(k.value for k in node.keywords))
    return node.func.attr in ("to", "type") and any(
        project.external(module, each) in _HALVES for each in given
    )


def made_fp16(context: Context, region: Region) -> str | None:
    """Return what is made fp16 in a region, or for a network that runs there, whose layers may get it."""
    module, forwards = region.module, context.unit.forwards
    for node in (node for stmt in region.statements() for node in ast.walk(stmt)):
        if isinstance(node, ast.Call):
            runs = forwards.call(module, node) is Forward.NETWORK
            for given in (node, *(all_given(node) if runs else ())):
                func = given.func if isinstance(given, ast.Call) else None
                held = func.value if isinstance(func, ast.Attribute) else given
                if _is_halved(context, region.function, given):
                    if not forwards.is_network(module, held):
                        return module.tree.segment(given)
    return None
