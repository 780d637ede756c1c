"""Networks that `amp.initialize` is given in a way that can be followed."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.facts.paths import tail
from amp_migrate.values.wrappers import itself


def are_followed(models: Iterable[ast.expr]) -> bool:
    """Tell whether what `amp.initialize` is given can be followed: variables and attributes, and nothing that is made there."""
    return all(isinstance(_moved(n), ast.Name | ast.Attribute | ast.Subscript) for n in models)


def _moved(node: ast.expr) -> ast.expr:
    """Return the network that is moved where it is given: ``model.to(device)``."""
    moves = isinstance(node, ast.Call) and tail(node) in ("cuda", "to")
    return itself(node) if moves else node
