"""Products of matrices that 16 bits break: of sparse ones, and of features with themselves."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import same
from amp_migrate.project import Function

_SPARSE = frozenset(
    {
        "torch.spmm",
        "torch.hspmm",
        "torch.sparse_coo_tensor",
        "torch.sparse_csr_tensor",
        "torch.sspaddmm",
    }
)
_TO_SPARSE = frozenset({"to_sparse", "to_sparse_coo", "to_sparse_csr"})
_PRODUCTS = frozenset({"mm", "bmm", "matmul"})
_TRANSPOSES = frozenset({"t", "transpose", "permute", "swapaxes"})


def is_sparse(name: str, method: str) -> bool:
    """Tell whether a call makes a sparse matrix or multiplies by one: a function of torch, or a method of a tensor."""
    made = name in _SPARSE or name.startswith("torch.sparse.")
    return made or (not name and method in _TO_SPARSE)


def is_gram(function: Function, call: ast.Call, name: str, method: str) -> bool:
    """Tell whether a call multiplies a matrix by its own transpose."""
    sides = list(call.args)
    if not name and method in _PRODUCTS and isinstance(call.func, ast.Attribute):
        sides = [call.func.value, *sides]
    elif name.rpartition(".")[2] not in _PRODUCTS or not name.startswith("torch."):
        return False
    if len(sides) < 2:
        return False
    left, right = sides[:2]
    return any(
        other is not None and same(other, side)
        for side, other in (
            (left, _transposed_of(function, right)),
            (right, _transposed_of(function, left)),
        )
    )


def _transposed_of(function: Function, node: ast.expr) -> ast.expr | None:
    """Return what an expression is the transpose of; a variable is followed to where it is set."""
    if isinstance(node, ast.Name):
        made = [
            s.value
            for s in ast.walk(function.scope)
            if isinstance(s, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == node.id for t in s.targets)
        ]
        node = made[0] if len(made) == 1 else node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr in _TRANSPOSES else None
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return node.value
    return None
