"""Products that 16 bits break run in FP32: their statement goes under an autocast that is off, their factors become FP32."""

from __future__ import annotations

import ast

from amp_migrate.enable.described.describe import ALIAS
from amp_migrate.enable.described.draft import Draft
from amp_migrate.facts.paths import path, walk
from amp_migrate.facts.tree import Tree

_VIEWS = frozenset({"t", "transpose", "permute", "swapaxes", "contiguous"})
_SIZES = frozenset({"numel", "size", "item", "dim"})


def in_fp32(tree: Tree, call: ast.Call, draft: Draft, *, method: bool) -> bool:
    """Put the statement of a product into FP32; tell whether that can be done there.

    It can where the statement computes nothing but the product, sums, and multiples of it, from variables and views
    of them: whatever else stood in it would leave the casts, too. `method` tells whether the object on which the
    product is called is a factor.
    """
    statement = tree.statement(call)
    factors = [*call.args]
    if method and isinstance(call.func, ast.Attribute):
        factors.insert(0, call.func.value)
    if call.keywords or not all(_is_view(factor) for factor in factors):
        return False
    if not isinstance(statement, ast.Assign | ast.Return) or not draft.tree.stands_alone(statement):
        return False
    if statement.lineno != statement.end_lineno:
        return False
    inner = {node for factor in factors for node in ast.walk(factor)}
    for node in walk(statement):
        if isinstance(node, ast.Call) and node is not call and node not in inner:
            if not isinstance(node.func, ast.Attribute) or node.func.attr not in _SIZES:
                return False
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return False
    line = tree.lines[statement.lineno - 1]
    margin, text = tree.margin(statement), line.strip()
    for factor in sorted(factors, key=lambda node: tree.span(node).end_column, reverse=True):
        end = tree.span(factor).end_column - len(margin)
        text = f"{text[:end]}.float(){text[end:]}"
    block = f"{margin}with {ALIAS}.disable_casts():\n{margin}{draft.step}{text}"
    draft.put((statement.lineno, 0), (statement.lineno, len(line)), block)
    return True


def _is_view(node: ast.expr) -> bool:
    """Tell whether an expression is a variable, or a view of one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _VIEWS and _is_view(node.func.value)
    return path(node) is not None
