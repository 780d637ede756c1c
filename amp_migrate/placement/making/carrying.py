"""Gives the GradScaler to the runners of a library, through which hooks and runners reach it."""

from __future__ import annotations

from amp_migrate.apex.sites import Kind
from amp_migrate.placement.finding.build import Index
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project.reach import reachable, upwards


def carry(unit: Unit, index: Index) -> None:
    """Let every runner carry the scaler; each program that initializes must be seen to make one."""
    runners = unit.home.runners
    if not runners.used:
        return
    everywhere = {site.function for site in index.sites if site.kind is Kind.INITIALIZE}
    for made in runners.made():
        initializing = reachable(unit.project, made.function) & everywhere
        if initializing and not initializing & set(unit.home.inits):
            continue
        apart = not initializing and runners.has_own_optimizer(made)
        text = None if apart else unit.home.access(made.function, made.statement)
        runners.carried.append((made, text))
    making = {made.function for made, text in runners.carried if text is not None}
    for function, sites in unit.home.inits.items():
        around = (reachable(unit.project, up) for up in upwards(unit.project, function))
        if not any(making & reached for reached in around):
            raise Cannot(
                "AMP901",
                sites[0].module,
                sites[0].node,
                f"the hooks of {runners.library.name} get the GradScaler from their runner, and this program is not seen to make one",
                "give amp-migrate the file that makes the runner as well, then run again",
            )
