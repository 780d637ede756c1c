"""Programs that initialize several times: Apex has one loss scale for all, and the last call to run sets it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.apart import elements, optimizer_expressions
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project.reach import run_around
from amp_migrate.project.rounds import may_run_behind
from amp_migrate.protocol.code.program import program_of


def training_before(unit: Unit, site: Site) -> Site | None:
    """Return an initialize of an optimizer that another initialize may come behind."""
    trainings = (other for other in _others(unit, site) if _trains(other))
    return next((other for other in trainings if _may_come(unit, other, site)), None)


def rescaled_by(unit: Unit, site: Site) -> Site | None:
    """Return an initialize of nothing to train that may run behind one, and gave all trainings another loss scale."""
    scale = unit.options[site].pinned
    for other in _others(unit, site):
        own = unit.options[other]
        fixed = own.pinned or ("1.0" if own.level in ("O0", "O3") else None)
        if not _trains(other) and fixed != scale and _may_come(unit, site, other):
            return other
    return None


def trained_by_none(unit: Unit, site: Site) -> bool:
    """Tell whether it is known of every optimizer what it trains, and none has a network of an initialize."""
    objects = program_of(unit.project).training.objects
    if _trains(site) or any(o.networks is None for o in objects.optimizers):
        return False
    models = elements(unit.options[site].arguments.get("models"))
    held = [objects.trained_at(site.module, model) for model in models]
    return bool(models) and not any(groups & objects.trained for groups in held)


def only_infers(unit: Unit, site: Site) -> bool:
    """Tell whether no optimizer is initialized, and nothing that the programs of an initialize run has a backward."""
    if any(unit.of(Kind.SCALE_LOSS)) or unit.steps or any(map(_trains, unit.of(Kind.INITIALIZE))):
        return False
    return not any(
        isinstance(node, ast.Attribute) and node.attr == "backward"
        for function in run_around(unit.project, site.function)
        for node in function.all_nodes
    )


def _others(unit: Unit, site: Site) -> Iterator[Site]:
    return (other for other in unit.of(Kind.INITIALIZE) if other is not site)


def _trains(site: Site) -> bool:
    return any(optimizer_expressions(site))


def _may_come(unit: Unit, first: Site, then: Site) -> bool:
    places = (first.function, first.node), (then.function, then.node)
    return may_run_behind(unit.project, *places)
