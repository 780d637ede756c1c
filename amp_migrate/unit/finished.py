"""Losses that are finished behind another backward, of what a forward pass before it returned."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.facts.paths import defs, uses, walk

_FP32 = frozenset(
    {
        "acos", "asin", "cosh", "cosine_similarity", "cross_entropy", "cumprod", "cumsum", "dist", "exp", "expm1",
        "kl_div", "l1_loss", "log", "log10", "log2", "log_softmax", "mse_loss", "nll_loss", "norm", "pow", "prod",
        "reciprocal", "renorm", "rsqrt", "smooth_l1_loss", "softmax", "softplus", "sum",
    }
)  # fmt: skip


def finished(computed: Iterable[ast.stmt], apart: Iterable[list[ast.stmt]]) -> list[list[ast.stmt]]:
    """Return, of each run of statements `apart`, the part that computes in fp32 with what `computed` wrote."""
    known = {path for stmt in computed for path in defs(stmt)}
    found = []
    for run in apart:
        cast = []
        for stmt in run:
            if uses(stmt) & known:
                known |= defs(stmt)
                cast += [stmt] if _runs_in_fp32(stmt) else []
        if cast:
            found.append([stmt for stmt in run if cast[0].lineno <= stmt.lineno <= cast[-1].lineno])
    return found


def _runs_in_fp32(stmt: ast.stmt) -> bool:
    """Tell whether a statement computes with what O1 and autocast run in fp32, as ``x.sum()`` or ``x ** 2``."""
    return any(
        (isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow))
        or (isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in _FP32)
        for n in walk(stmt)
    )
