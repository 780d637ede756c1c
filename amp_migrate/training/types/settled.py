"""Where casts of a network no longer show in a value, and where no gradient passes."""

from __future__ import annotations

import ast

from amp_migrate.training.beliefs import HAND_OUT_STATE, HAND_OUT_WEIGHTS, WEIGHTS

Stops = frozenset[str]
RETYPES = frozenset({"bfloat16", "half", "to", "type", "type_as"})
"""Methods that may give a tensor another floating type."""
LEAVES: Stops = frozenset({"cpu", "double", "item", "numpy", "tolist"})
SETTLES: Stops = LEAVES | {"float"} | HAND_OUT_WEIGHTS
NARROW: Stops = SETTLES | HAND_OUT_STATE | {"is_wide"}
"""The same, for what is followed through nothing that computes in fp32 or gives whole numbers."""


def is_settled(node: ast.AST, stops: Stops) -> bool:
    """Tell whether casts do not matter to what an expression gives: a weight or its gradient, what a method of `stops` gives."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("grad", "param_groups") or (
            stops >= HAND_OUT_WEIGHTS and _is_weight(node)
        )
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in stops


def _is_weight(node: ast.Attribute) -> bool:
    """Tell whether an attribute is the data of a weight: ``layer.weight.data``."""
    held = node.value
    return node.attr == "data" and isinstance(held, ast.Attribute) and held.attr in WEIGHTS


def is_cut_off(node: ast.AST) -> bool:
    """Tell whether no gradient passes an expression: what is detached, or a number."""
    if isinstance(node, ast.Call) and not node.args:
        node = node.func
        return isinstance(node, ast.Attribute) and node.attr in ("detach", "item")
    return isinstance(node, ast.Attribute) and node.attr == "data"
