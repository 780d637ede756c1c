"""Why the GradScaler cannot be had where it is needed."""

from __future__ import annotations

import ast

from amp_migrate.project import Function
from amp_migrate.unit.cannot import Cannot
from amp_migrate.unit.order import dominates, key
from amp_migrate.unit.sites import Site


def unreachable(
    inits: dict[Function, list[Site]], name: str, function: Function, node: ast.AST, reason: str
) -> Cannot:
    """Return the refusal of a function that the scaler cannot be handed to; `name` is what it would be called."""
    places = ", ".join(f"{s.module.path}:{s.span.line}" for sites in inits.values() for s in sites)
    made = f"the GradScaler made at {places}" if places else "a GradScaler"
    return Cannot(
        "AMP901",
        function.module,
        node,
        f"{function.qualname}() needs the GradScaler, but {reason}",
        f"pass {made} to {function.qualname}() and use it there as `{name}`",
    )


def refuse_before(sites: list[Site], function: Function, node: ast.AST) -> None:
    """The creation climbs out of its guards until it comes before every use; that must be possible."""
    tree = function.module.tree
    if function.node is None and tree.function(node) is not None:
        return
    if not any(
        key(site.node) < key(node) or dominates(tree, site.statement, node) for site in sites
    ):
        raise Cannot(
            "AMP901",
            function.module,
            node,
            "the GradScaler is needed before amp.initialize creates it",
            "move amp.initialize above this line and run again",
        )
