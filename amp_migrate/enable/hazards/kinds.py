"""Which calls multiply matrices: sparse ones, or features with themselves."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import same
from amp_migrate.project import Function

_MAKERS = ("torch.sparse_", "torch.sparse.FloatTensor")
_OF_SPARSE = frozenset({"torch.spmm", "torch.hspmm", "torch.dsmm", "torch.smm", "torch.sparse.mm"})
_TO_SPARSE = frozenset({"to_sparse", "to_sparse_coo", "to_sparse_csr"})
_PRODUCTS = frozenset({"mm", "bmm", "matmul"})
_TRANSPOSES = frozenset({"t", "transpose", "permute", "swapaxes"})


def makes_sparse(name: str, method: str) -> bool:
    """Tell whether a call makes a sparse matrix: a function of torch, or a method of a tensor."""
    return name.startswith(_MAKERS) or (not name and method in _TO_SPARSE)


def is_of_sparse(name: str) -> bool:
    """Tell whether a function of torch multiplies a sparse matrix by another."""
    return name in _OF_SPARSE


def is_other_of_sparse(name: str) -> bool:
    """Tell whether a function of torch computes of a sparse matrix in another way."""
    return name == "torch.sspaddmm" or name.startswith("torch.sparse.")


def is_product(name: str) -> bool:
    """Tell whether a function of torch multiplies any two matrices."""
    return name.startswith("torch.") and name.rpartition(".")[2] in _PRODUCTS


def is_gram(function: Function, call: ast.Call, name: str, method: str) -> bool:
    """Tell whether a call multiplies a matrix by its own transpose."""
    sides = list(call.args)
    if not name and method in _PRODUCTS and isinstance(call.func, ast.Attribute):
        sides = [call.func.value, *sides]
    elif not is_product(name):
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
            for s in function.all_nodes
            if isinstance(s, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == node.id for t in s.targets)
        ]
        node = made[0] if len(made) == 1 else node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr in _TRANSPOSES else None
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return node.value
    return None
