"""What operations make of gradients, by their names: multiples of them, or what says nothing of their values."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import tail
from amp_migrate.training.beliefs import SHAPE_OF_GRADIENT

SAYS_NO_VALUE = SHAPE_OF_GRADIENT | {
    "clear", "data_ptr", "element_size", "get_device", "is_contiguous", "is_cuda", "keys", "nelement", "new",
    "new_empty", "new_zeros", "stride", "type", "wait",
}  # fmt: skip
GIVES_THEM_ON = frozenset(
    {
        "T", "chunk", "clone", "coalesce", "contiguous", "copy", "cpu", "cuda", "data", "detach", "detach_", "double", "expand",
        "flatten", "float", "get", "items", "narrow", "permute", "pop", "reshape", "split", "squeeze", "sum", "t",
        "transpose", "unsqueeze", "values", "view", "view_as",
    }
)  # fmt: skip
MULTIPLIES = frozenset({"div", "div_", "mul", "mul_", "true_divide", "true_divide_"})
ADDS = frozenset({"add", "add_", "append", "copy_", "extend", "sub", "sub_"})
TAKES_ITS_SHAPE = frozenset({"empty_like", "expand_as", "reshape_as", "view_as", "zeros_like"})
MAPS = frozenset(
    {
        "_flatten_dense_tensors", "_take_tensors", "_unflatten_dense_tensors", "cat", "chunk", "clone", "concat", "enumerate",
        "flatten", "iter", "list", "mean", "next", "reversed", "split", "stack", "sum", "tuple", "unbind",
    }
)  # fmt: skip
ASKS_NOTHING = frozenset({"hasattr", "id", "isinstance", "len", "type"})
COLLECTIONS = frozenset({"OrderedDict", "defaultdict", "deque", "dict", "list"})


def is_empty(value: ast.expr) -> bool:
    """Tell whether a collection is made with nothing in it."""
    if isinstance(value, ast.List | ast.Tuple):
        return not value.elts
    if isinstance(value, ast.Dict):
        return not value.keys
    if not isinstance(value, ast.Call) or tail(value) not in COLLECTIONS:
        return False
    return not value.args or tail(value) == "defaultdict"
