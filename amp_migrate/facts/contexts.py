"""The ``with`` statements that matter to a forward pass: autocast, and no gradients."""

from __future__ import annotations

import ast

from amp_migrate.facts.tree import Tree

_NO_GRAD = ("no_grad", "inference_mode")


def enters_autocast(node: ast.With) -> bool:
    """Tell whether a `with` enters autocast."""
    return _enters(node, ("autocast",))


def in_autocast(tree: Tree, node: ast.AST) -> bool:
    """Tell whether a node stands under an autocast that the source has itself."""
    return any(isinstance(up, ast.With) and enters_autocast(up) for up in tree.ancestors(node))


def runs_without_gradients(node: ast.AST) -> bool:
    """Tell whether a node is ``with torch.no_grad():``."""
    return isinstance(node, ast.With) and _enters(node, _NO_GRAD)


def _enters(node: ast.With, words: tuple[str, ...]) -> bool:
    return any(word in ast.dump(item.context_expr) for item in node.items for word in words)
