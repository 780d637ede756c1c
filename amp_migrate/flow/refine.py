"""What a test that came out adds to an assumption."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from amp_migrate.flow.assumption import NOTHING, Assumption, Known, Truth
from amp_migrate.flow.evaluate import asks_bool, evaluate, pairs, value_of
from amp_migrate.flow.terms import compared, divided, term


def assume(stated: Mapping[str, object] | None = None, base: Assumption = NOTHING) -> Assumption:
    """Return an assumption from expressions as text: a bool says how each comes out as a test, another constant its value.

    ``assume({"args.fp16": True, "opt_level": "O1", "amp is None": False})``. Raises `ValueError` where an
    expression has no lasting value (a call), or the statements contradict each other.
    """
    found = base
    for text, value in (stated or {}).items():
        node = ast.parse(text, mode="eval").body
        if isinstance(value, bool):
            refined = refine(found, node, value)
            if refined is None:
                raise ValueError(f"contradicts the rest: {text}")
            if evaluate(node, refined) is not value:
                raise ValueError(f"no lasting value: {text}")
            found = refined
        else:
            spelled = term(node)
            if spelled is None:
                raise ValueError(f"no lasting value: {text}")
            found = found.with_fact(spelled, Known(value))
    return found


def refuted(node: ast.If) -> list[ast.If]:
    """Return the `elif`s right after a test that cannot be true where it is: ``kind == "b"`` after ``kind == "a"``."""
    known, found = refine(NOTHING, node.test, True), list[ast.If]()
    while known is not None and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        if evaluate(node.test, known) is not False:
            break
        found.append(node)
    return found


def refine(assumption: Assumption, node: ast.expr, truth: bool) -> Assumption | None:
    """Return the assumption with a test that came out as `truth`; None where it cannot."""
    known = evaluate(node, assumption)
    if known is not None:
        return assumption if known is truth else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return refine(assumption, node.operand, not truth)
    if isinstance(node, ast.Call) and asks_bool(node):
        return refine(assumption, node.args[0], truth)
    if isinstance(node, ast.BoolOp):
        return _refine_joined(assumption, node.values, isinstance(node.op, ast.And), truth)
    if isinstance(node, ast.Compare):
        if len(node.ops) > 1:
            return _refine_joined(assumption, pairs(node), True, truth)
        return _refine_compared(assumption, node, truth)
    found = term(node)
    if found is None:
        return assumption
    assumption = assumption.with_fact(found, Truth(truth))
    divides = divided(node)
    return assumption if divides is None else assumption.with_fact(divides, Truth(not truth))


def _refine_joined(
    assumption: Assumption,
    parts: Sequence[ast.expr],
    conjunction: bool,
    truth: bool,
) -> Assumption | None:
    if truth is conjunction:
        found: Assumption | None = assumption
        for part in parts:
            found = None if found is None else refine(found, part, truth)
        return found
    # one of the parts decided; which one is known where all others are known not to have
    open_parts = [part for part in parts if evaluate(part, assumption) is None]
    return refine(assumption, open_parts[0], truth) if len(open_parts) == 1 else assumption


def _refine_compared(assumption: Assumption, node: ast.Compare, truth: bool) -> Assumption | None:
    found, positive = compared(node)
    if found is None:
        return assumption
    holds = truth is positive
    assumption = assumption.with_fact(found, Truth(holds))
    op, left, right = node.ops[0], node.left, node.comparators[0]
    if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.Tuple | ast.List | ast.Set):
        if not holds:
            for element in right.elts:
                pair = ast.copy_location(ast.Compare(left, [ast.Eq()], [element]), node)
                spelled = compared(pair)[0]
                if spelled is not None:
                    assumption = assumption.with_fact(spelled, Truth(False))
        return assumption
    if not holds or not isinstance(op, ast.Eq | ast.Is | ast.NotEq | ast.IsNot):
        return assumption
    for one, other in ((left, right), (right, left)):
        constant = value_of(other, assumption)
        spelled = term(one)
        if spelled is None or isinstance(one, ast.Constant) or not isinstance(constant, Known):
            continue
        if isinstance(value_of(one, assumption), Known):
            continue
        if constant.value is None or constant.kind is str:
            assumption = assumption.with_fact(spelled.of_object(), constant)
        elif constant.kind is int:
            assumption = assumption.with_fact(spelled, constant)
    return assumption
