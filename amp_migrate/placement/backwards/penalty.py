"""A backward of a penalty on the weights, behind a read of gradients: it adds to them when they are unscaled."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import defs, uses, walk
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.gradients import Use
from amp_migrate.project import Module
from amp_migrate.project.order import common, dominates, inside
from amp_migrate.project.reach import reached_by
from amp_migrate.project.rounds import last_before, runs_before
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.steps import Backward, Step, boundary

_PLAIN = frozenset(
    {
        "abs", "add", "append", "clone", "detach", "div", "float", "get", "item", "items", "keys", "mean", "mul",
        "named_parameters", "norm", "parameters", "pow", "size", "square", "sub", "sum", "to", "values", "zeros_like",
    }
)  # fmt: skip


def place_before(
    unit: Unit, step: Step, first: ast.stmt, found: list[Use], later: list[Backward]
) -> ast.stmt | None:
    """Return where gradients are unscaled once, before reads and before backward passes of penalties add to them.

    None where a later backward runs a network, whose gradients need the scale, or need not follow.
    """
    tree = step.tree
    earlier = [b for b in unit.backwards_of(step.function) if b not in later]
    before = last_before(unit.project, step.function, [b.node for b in earlier], first)
    if not before or boundary(step, before[-1]) is not None:
        return None
    for backward in later:
        pair = common(tree, first, backward.node)
        if pair is None or pair[0] is pair[1] or not _is_penalty(unit, backward):
            return None
        first = pair[0]
    reads = [use.statement for use in found]
    behind = all(dominates(tree, first, b.node) for b in later)
    covered = all(inside(tree, read, first) or dominates(tree, first, read) for read in reads)
    apart = not any(inside(tree, b.node, first) for b in earlier)
    return first if behind and covered and apart else None


def _is_penalty(unit: Unit, backward: Backward) -> bool:
    """Tell whether a loss is computed of the weights themselves, by nothing that autocast casts to fp16."""
    function = backward.function
    needed = uses(backward.loss)
    for stmt in walk(function.scope):
        if isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign) and defs(stmt) & needed:
            if runs_before(unit.project, function, stmt, backward.node):
                if not _is_plain(unit, function.module, stmt):
                    return False
    return _is_plain(unit, function.module, backward.loss)


def _is_plain(unit: Unit, module: Module, node: ast.AST) -> bool:
    for call in walk(node):
        if not isinstance(call, ast.Call):
            continue
        callees = unit.project.callees(call)
        external = (unit.project.external(module, call.func) or "").startswith("torch.")
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if not callees and not (method in _PLAIN or external or _is_builtin(call)):
            return False
        if unit.forwards.call(module, call) > Forward.NONE and not callees:
            return False
        for function in reached_by(unit.project, call):
            if unit.forwards.strength(function.module, function.scope) > Forward.NONE:
                return False
    return True


def _is_builtin(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in ("sum", "zip", "len", "float", "max")
