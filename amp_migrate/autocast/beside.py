"""Functions that a call runs in place of what turns AMP on: ``TRAININGS[name](model)``."""

from __future__ import annotations

from collections.abc import Collection

from amp_migrate.facts.closure import closure
from amp_migrate.project import Function, Project
from amp_migrate.project.reach import reachable


def runs_instead(project: Project, function: Function, origins: Collection[Function]) -> bool:
    """Tell whether one call runs what leads to a function, or in its place what leads to an initialize."""
    if function in origins:
        return False

    def leads(one: Function) -> bool:
        return one in origins or not reachable(project, one).isdisjoint(origins)

    above = closure([function], lambda f: (site.function for site in project.callers(f)))
    return any(
        leads(other)
        for here in above
        if not leads(here)
        for site in project.callers(here)
        for other in project.callees(site.call)
    )
