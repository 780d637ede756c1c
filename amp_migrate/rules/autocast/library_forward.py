"""The statements that put the forward of a model under autocast, where a library runs it."""

from __future__ import annotations

import ast

from amp_migrate.apex.apart import elements
from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import path
from amp_migrate.flow.condition import as_bool
from amp_migrate.plan.cannot import Cannot
from amp_migrate.rules.base import Context


def forwards_cast(context: Context, site: Site) -> list[str]:
    """Return a statement for each model of an initialize, to follow it; none where no library runs them."""
    if not context.unit.outside or context.casts.never:
        return []
    call = autocast(context, site)
    return [
        f"{model}.forward = {call}(type({model}).forward).__get__({model})"
        for model in _models(context, site)
    ]


def autocast(context: Context, site: Site) -> str:
    """Return the autocast that an initialize stands for, where it stands."""
    condition = as_bool(context.unit.options[site].casts, context.unit.not_bools)
    return context.spelling.autocast(condition.text if condition.value is None else "")


def _models(context: Context, site: Site) -> list[str]:
    """Return the names of the models from the initialize on."""
    given = elements(context.unit.options[site].arguments.get("models"))
    parent = site.module.tree.parent(site.node)
    if isinstance(parent, ast.Assign):
        target = parent.targets[0]
        first = target.elts[0] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
        bound = elements(first)
        given = bound if len(bound) == len(given) else []
    elif not isinstance(parent, ast.Expr):
        given = []
    names = [path(node) for node in given]
    found = [name for name in names if name is not None]
    if not found or len(found) != len(names):
        raise Cannot(
            "AMP904",
            *site.at,
            f"{context.unit.home.runners.library.name} runs the forward pass, and the models that must run under autocast have no names here",
            "assign what amp.initialize returns to a variable each for the model and the optimizer, then run again",
        )
    return found
