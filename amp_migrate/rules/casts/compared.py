"""Weights that are compared with fp16: O2 and O3 had them so, and they stay fp32 now."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import tail
from amp_migrate.plan.model import Decision, Status
from amp_migrate.project import Function, Module, Project
from amp_migrate.protocol.code.program import program_of
from amp_migrate.rules.autocast.ungiven import high, levels
from amp_migrate.rules.base import Context, Rule, decision
from amp_migrate.training.beliefs import WEIGHTS

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
                if _is_weight(one) and is_halved(context, function, other):
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


def is_halved(context: Context, function: Function, node: ast.expr) -> bool:
    """Tell whether the program makes something fp16, there or where a variable or an attribute is bound."""
    if halves(context.unit.project, function.module, node):
        return True
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    origins = program_of(context.unit.project).training.losses.bound(function, node)
    return any(
        isinstance(o.node, ast.expr) and halves(context.unit.project, o.function.module, o.node)
        for o in origins
    )


def halves(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an expression is ``x.half()`` or ``x.to(torch.float16)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "half":
        return not node.args and not project.callees(node)
    given = (*node.args, *(k.value for k in node.keywords))
    return node.func.attr in ("to", "type") and any(
        project.external(module, each) in _HALVES for each in given
    )
