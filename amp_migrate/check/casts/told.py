"""What a rule of the run says of the calls above a forward: that they run without the casts that Apex had."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.project import Function, Project

_Reported = Callable[[Function, ast.Call], bool]


def told_above(
    project: Project,
    native: Casting,
    begun: Mapping[Function, frozenset[Casts]],
    function: Function,
    reported: _Reported,
    around: frozenset[Function] = frozenset(),
) -> bool:
    """Tell whether every way to a function of the new text is cast, or goes through a call that is reported.

    The functions `around` are asked already.
    """
    if function in around:
        return True
    around |= {function}
    sites = [site for site in project.callers(function) if site.function in begun]
    return bool(sites) and all(
        native.at(site.function, site.call, begun[site.function]) is Casts.ON
        or reported(site.function, site.call)
        or told_above(project, native, begun, site.function, reported, around)
        for site in sites
    )
