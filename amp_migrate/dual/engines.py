"""Engines of other packages that initialize Apex themselves: what a project adds to them for Apex."""

from __future__ import annotations

from amp_migrate.apex.sites import Kind
from amp_migrate.dual.arms import Arm, arm_of
from amp_migrate.dual.cut import Cut, Given
from amp_migrate.project.programs import beside

# Raise while they are made where Apex is asked for and cannot be imported.
_ENGINES = ("DeepSpeedEngine",)
_WHY = "the engine initializes Apex itself, and has an fp16 of its own"


def engine(given: Given) -> Cut | None:
    """Return the branches for Apex in the methods of such an engine; None for a unit that is anything else.

    Programs that initialize Apex themselves may run what the engine adds for it.
    """
    project, availability, found, everywhere = given
    near = beside(project, *(site.module.path for site in found))
    if any(site.kind is Kind.INITIALIZE and site.module.path in near for site in everywhere):
        return None
    arms: dict[Arm, None] = {}
    for site in found:
        cls = site.function.cls
        bases = cls.externals() if cls is not None else ()
        if not any(base.rpartition(".")[2] in _ENGINES for base in bases):
            return None
        arm = arm_of(project, availability[site.module], site.module, site.node)
        if not isinstance(arm, Arm) or arm.side != "body":
            return None
        arms[arm] = None
    gone = {node for arm in arms for node in arm.nodes()}
    sites = tuple(s for s in everywhere if s in found or s.node in gone)
    return Cut(f"{_WHY}, and choosing Apex raises", sites, tuple(arms), raising=tuple(arms))
