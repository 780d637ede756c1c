"""Functions that initialize Apex themselves, called where it is on already: what such a call says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from amp_migrate.check.apex.assumed import Facts
from amp_migrate.check.apex.disabling import States
from amp_migrate.check.apex.initialized import ON, Initialized
from amp_migrate.check.casts.casting import Casting
from amp_migrate.check.events.sides import Side
from amp_migrate.project import Function
from amp_migrate.training.origins.constants import settled


def called_again(
    old: Side, new: Side, apex: Initialized, begun: Mapping[Function, States], facts: Facts
) -> Iterator[tuple[Function, Casting]]:
    """Yield the functions that may initialize and are called with AMP on, each with the casts of that call.

    What the call settles is known by the constants that it gives.
    """
    project = old.project
    for function, start in begun.items():
        calls = {call for call, states in apex.calls(function, start) if states == ON}
        for call in calls:
            for callee in project.callees(call):
                if callee.node is None or not apex.leads(callee):
                    continue
                if (site := project.site(call, callee)) is not None:
                    known = callee, settled(project, site, callee)
                    yield callee, Casting(new.program, Facts((known, *facts.stated)))
