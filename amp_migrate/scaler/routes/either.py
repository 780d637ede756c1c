"""Calls that may run another function than the one that takes the GradScaler."""

from __future__ import annotations

import ast
from dataclasses import replace

from amp_migrate.modules.binding import fits
from amp_migrate.plan.cannot import OutOfReach, spoken
from amp_migrate.project import CallSite, Function
from amp_migrate.scaler.home import Home
from amp_migrate.scaler.routes.places import fills_all


def refuse_either(home: Home) -> None:
    """Raise `Cannot` where a call that hands the scaler on may reach a function that takes none."""
    project = home.project
    taking = {f: {f, *project.family(f)} for f in [*home.threads, *home.carriers.parameters]}
    able = {member for members in taking.values() for member in members}
    for function in taking:
        for site in project.callers(function):
            for callee in project.callees(site.call):
                if callee in able or home.name in callee.parameters.names:
                    continue
                if fills_all(site, function) and _takes_one_more(site, callee):
                    continue
                if not fits(site, callee) and not fits(replace(site, bound=not site.bound), callee):
                    continue  # It raises TypeError there, with the scaler and without.
                raise OutOfReach(
                    "AMP901",
                    *site.function.at(site.call),
                    f"this call runs {spoken(function)}, which needs the GradScaler, or {spoken(callee)}, which takes none",
                    f"give {spoken(callee)} one more parameter, its last, which it does not read, then run again",
                )


def _takes_one_more(site: CallSite, callee: Function) -> bool:
    """Tell whether a function has a parameter behind those that a call fills, which it never reads."""
    free = callee.parameters.positional[int(site.bound) + len(site.call.args) :]
    read = {node.id for node in callee.own_nodes if isinstance(node, ast.Name)}
    return bool(free) and not site.call.keywords and free[0] not in read
