"""Where casts of a network no longer show in a value, and where no gradient passes."""

from __future__ import annotations

import ast

from amp_migrate.facts.below import children
from amp_migrate.project import Module, Project
from amp_migrate.training.beliefs import (
    ARRAYS,
    HAND_OUT_STATE,
    HAND_OUT_WEIGHTS,
    METHODS_WITHOUT_CASTS,
    RUNS_NO_FORWARD,
    WEIGHTS,
)
from amp_migrate.training.forwards.classes import is_of_network

Stops = frozenset[str]
RETYPES = frozenset({"bfloat16", "half", "to", "type", "type_as"})
"""Methods that may give a tensor another floating type."""
LEAVES: Stops = frozenset({"cpu", "double", "item", "numpy", "tolist"})
SETTLES: Stops = LEAVES | {"float"} | HAND_OUT_WEIGHTS
NARROW: Stops = SETTLES | HAND_OUT_STATE | {"is_wide"}
"""The same, for what is followed through nothing that computes in fp32 or gives whole numbers."""

_TELLS = frozenset({"device", "dtype", "ndim", "shape"})
_ASKED = frozenset({"dim", "numel", "numpy", "size", "tolist"})
_COUNTS = frozenset({"len", "range"})
_COPYING = frozenset({"torch.FloatTensor", "torch.Tensor", "torch.tensor"})
_BY_METHOD = frozenset(
    [
        "all",
        "any",
        "choose",
        "clip",
        "compress",
        "cumprod",
        "cumsum",
        "diagonal",
        "max",
        "mean",
        "min",
        "nonzero",
        "prod",
        "put",
        "ravel",
        "repeat",
        "reshape",
        "round",
        "sort",
        "squeeze",
        "std",
        "sum",
        "swapaxes",
        "take",
        "trace",
        "transpose",
        "var",
    ]
)
"""Functions of numpy that call the method of that name of what they are given, be that a tensor."""

_PARTS = METHODS_WITHOUT_CASTS | {"get", "items", "keys", "values"}


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


def is_array(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether an expression is what a library of arrays gives."""
    called = project.external(module, node.func) if isinstance(node, ast.Call) else None
    return (called or "").partition(".")[0] in ARRAYS


def has_no_graph(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether what an expression gives is no tensor that has a gradient: a shape, a type, a test, a count, an array, a copy."""
    if isinstance(node, ast.Attribute):
        return node.attr in _TELLS
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Compare)
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr in _ASKED and not project.callees(node):
        return project.external(module, func) is None
    called = project.external(module, func) or ""
    by_method = called.partition(".")[0] == "numpy" and called.rpartition(".")[2] in _BY_METHOD
    if called in _COPYING and node.args and isinstance(node.args[0], ast.List | ast.ListComp):
        return True
    counts = isinstance(func, ast.Name) and func.id in _COUNTS and not project.callees(node)
    return counts or (is_array(project, module, node) and not by_method)


def is_cut_off(node: ast.AST) -> bool:
    """Tell whether no gradient passes an expression: what is detached, or a number."""
    if isinstance(node, ast.Call) and not node.args:
        node = node.func
        return isinstance(node, ast.Attribute) and node.attr in ("detach", "item")
    return isinstance(node, ast.Attribute) and node.attr == "data"


def below(node: ast.AST, stops: Stops | None) -> list[ast.AST]:
    """Return the nodes straight below one that show in its value, for what is narrow in its type: no index does, and no test."""
    if stops is NARROW and isinstance(node, ast.Subscript):
        return [node.value]
    if stops is NARROW and isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    return children(node)


def runs_nothing(project: Project, call: ast.Call, stops: Stops) -> bool:
    """Tell whether a call runs no network by itself: it gives what it is called on, or a part of that, or runs what is in sight."""
    callees = project.callees(call)
    if callees and not any(map(is_of_network, callees)):
        return True
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr in HAND_OUT_STATE:
        return True
    return call.func.attr in (_PARTS if stops is NARROW else RUNS_NO_FORWARD) and not callees
