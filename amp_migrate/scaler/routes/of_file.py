"""The scaler as a variable of the file that initializes, and where amp itself is handed on from there."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from amp_migrate.project import Function
from amp_migrate.project.reach import reachable
from amp_migrate.scaler.reach.out_of_reach import Inits
from amp_migrate.scaler.routes.carriers import Carriers

if TYPE_CHECKING:
    from amp_migrate.scaler.home import Home


def reached(
    home: Home, function: Function, node: ast.AST, hand: Callable[[Function, ast.AST], str]
) -> str:
    """Return how a function reaches the scaler: as the variable, through what amp travelled by, or by a parameter.

    `hand` lets the calls of a function of another file, which does not import this one, give it the scaler. Raises `Cannot`
    where they cannot, and where amp is handed on before the scaler is made.
    """
    made, inits, carriers = home.made, home.inits, home.carriers
    if carriers.published or carriers.empty or not all(_goes_along(made, carriers)):
        reason = "amp itself is handed on, and a variable would not go with it"
        raise made.unreachable(function, node, reason)
    if function in carriers.parameters:
        return home.name
    if carriers.stored and function in carriers.paths:
        return f"{carriers.paths[function]}.{home.name}"
    if not inits or any(f.module is not function.module for f in inits):
        imported = home.elsewhere.reached(function, node) if inits else None
        if imported is not None:
            return imported
        alone = function.node is not None and len({f.module for f in inits}) == 1
        if alone and inits.keys().isdisjoint(reachable(made.project, function)):
            return hand(function, node)  # nothing in its course makes the variable anew
        reason = "it stands in another file"
        raise made.unreachable(function, node, reason, made.places)
    return home.name


def _goes_along(made: Inits, carriers: Carriers) -> list[bool]:
    """Tell of each place that hands amp on whether the scaler is made by then."""
    places: list[tuple[Function, ast.AST]] = [(p.site.function, p.call) for p in carriers.passed]
    places += [(stored.site.function, stored.statement) for stored in carriers.stored]
    return [made.is_made_at(function, node) for function, node in places]
