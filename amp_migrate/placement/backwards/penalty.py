"""A backward of a penalty on the weights, behind a read of gradients: it adds to them when they are unscaled."""

from __future__ import annotations

import ast
from dataclasses import replace

from amp_migrate.facts.paths import defs, walk
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.gradients import Use
from amp_migrate.project import Function, Module
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


def of_weights(unit: Unit, backward: Backward, seen: frozenset[Function] = frozenset()) -> bool:
    """Tell whether a loss is computed of weights alone, in its function or by all who give it that, by nothing that autocast casts to fp16."""
    function, module, loss = backward.function, backward.module, backward.loss
    if isinstance(loss, ast.Name) and function not in seen:
        sites = unit.project.callers(function)
        given = [unit.project.arguments(site, function).get(loss.id) for site in sites]
        own = module.scopes.owner(loss) is function.scope and len(module.scopes.bound(loss)) == 1
        if given and all(given) and own:
            return all(
                node is not None
                and of_weights(
                    unit,
                    replace(
                        backward,
                        module=site.function.module,
                        function=site.function,
                        node=site.call,
                        loss=node,
                    ),
                    seen | {function},
                )
                for site, node in zip(sites, given, strict=True)
            )
    computed, needed = _computed(unit, backward)
    parts = [part for node in computed for part in walk(node)]
    calls = [part for part in parts if isinstance(part, ast.Call)]
    return (
        any(_is_walk(call) for call in calls)
        and needed.isdisjoint(function.parameters.names)
        and all(_is_builtin(c) or _method(c) in _PLAIN for c in calls)
        and not any(isinstance(getattr(part, "op", None), ast.MatMult) for part in parts)
        and all(_is_plain(unit, module, node) for node in computed)
    )


def _computed(unit: Unit, backward: Backward) -> tuple[list[ast.expr], set[str]]:
    """Return the expressions that a loss is computed by in its function, and the names those compute with."""
    computed, needed = [backward.loss], _followed(backward.loss)
    for stmt in reversed(list(backward.function.own_nodes)):
        if isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign) and defs(stmt) & needed:
            before = runs_before(unit.project, backward.function, stmt, backward.node)
            if stmt.value is not None and before:
                computed.append(stmt.value)
                needed |= _followed(stmt.value)
    return computed, needed


def _followed(node: ast.expr) -> set[str]:
    """Return the names that an expression computes with: not the networks whose weights it takes, nor what it reads a setting of."""
    parts = list(walk(node))
    methods = {id(part.func) for part in parts if isinstance(part, ast.Call)}
    apart = {id(part.func.value) for part in parts if _is_walk(part)}  # type: ignore[attr-defined]
    apart |= {
        id(part.value)
        for part in parts
        if isinstance(part, ast.Attribute) and id(part) not in methods
    }
    return {part.id for part in parts if isinstance(part, ast.Name) and id(part) not in apart}


def _is_walk(node: ast.AST) -> bool:
    """Tell whether a node calls for the weights of a network."""
    return isinstance(node, ast.Call) and _method(node) in ("parameters", "named_parameters")


def _is_penalty(unit: Unit, backward: Backward) -> bool:
    """Tell whether a loss is computed of the weights themselves, by nothing that autocast casts to fp16."""
    computed, _ = _computed(unit, backward)
    return all(_is_plain(unit, backward.module, node) for node in computed)


def _is_plain(unit: Unit, module: Module, node: ast.AST) -> bool:
    for call in walk(node):
        if not isinstance(call, ast.Call):
            continue
        callees = unit.project.callees(call)
        external = (unit.project.external(module, call.func) or "").startswith("torch.")
        method = _method(call)
        if not callees and not (method in _PLAIN or external or _is_builtin(call)):
            return False
        if unit.forwards.call(module, call) > Forward.NONE and not callees:
            return False
        for function in reached_by(unit.project, call):
            if unit.forwards.strength(function.module, function.scope) > Forward.NONE:
                return False
    return True


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_builtin(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in ("sum", "zip", "len", "float", "max")
