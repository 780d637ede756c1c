"""Helpers that clip by their names, and the optimizers that a clip names."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from amp_migrate.facts.paths import path, tail
from amp_migrate.facts.tree import Tree
from amp_migrate.training.beliefs import CLIP_WORDS, OWNER_NAME


def clips(call: ast.Call, name: str) -> bool:
    """Tell whether a helper reads gradients by its name: ``clip_gradients(model)``, not ``clip(images, 0, 1)``."""
    if any(word in name for word in CLIP_WORDS) or ("clip" in name and "grad" in name):
        return bool(call.args) or isinstance(call.func, ast.Attribute)
    given = [path(node.func if isinstance(node, ast.Call) else node) for node in call.args]
    return "clip" in name and any(OWNER_NAME.search(g.rpartition(".")[2]) for g in given if g)


def named_optimizer(
    call: ast.Call, masters: Mapping[ast.expr | ast.stmt, object]
) -> ast.expr | None:
    for part in ast.walk(call):
        if part in masters and isinstance(part, ast.Call) and part.args:
            return part.args[0]
    return None


def twin(
    tree: Tree, call: ast.Call, masters: Mapping[ast.expr | ast.stmt, object]
) -> ast.expr | None:
    """Return the optimizer that the Apex branch beside a plain clip names."""
    up = tree.holder(tree.statement(call))
    if not isinstance(up, ast.If):
        return None
    beside = [n for n in ast.walk(up) if isinstance(n, ast.Call) and tail(n) == tail(call)]
    found = [
        name for n in beside if n is not call and (name := named_optimizer(n, masters)) is not None
    ]
    return found[0] if len(found) == 1 else None
