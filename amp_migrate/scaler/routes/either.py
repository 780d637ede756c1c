"""Calls that may run another function than the one that takes the GradScaler: it takes one as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from amp_migrate.modules.binding import fits
from amp_migrate.plan.cannot import Cannot, OutOfReach, spoken
from amp_migrate.plan.model import AddArgument
from amp_migrate.project import CallSite, Function
from amp_migrate.scaler.home import Home
from amp_migrate.scaler.routes.places import fills_all


def carry_either(home: Home) -> None:
    """Give the GradScaler to each function that a call may run in place of one that takes it, although it reads none.

    Raises `Cannot` where such a function cannot take one as the other does.
    """
    while (found := next(_lacking(home), None)) is not None:
        site, function, callee = found
        try:
            home.take(callee, site.call)
        except Cannot:
            raise _either(site, function, callee) from None
    _name_alike(home)


def _lacking(home: Home) -> Iterator[tuple[CallSite, Function, Function]]:
    """Yield the calls that hand the scaler on and may reach a function that takes none, with both functions."""
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
                yield site, function, callee


def _name_alike(home: Home) -> None:
    """Hand the scaler on by its name where one of the functions that a call may run needs it so."""
    threads = home.threads.values()
    named = {
        (path, edit.call)
        for thread in threads
        for path, edit in thread.edits
        if isinstance(edit, AddArgument) and edit.keyword
    }
    for thread in threads:
        thread.edits = [
            (path, replace(edit, keyword=home.name))
            if isinstance(edit, AddArgument) and (path, edit.call) in named
            else (path, edit)
            for path, edit in thread.edits
        ]


def _either(site: CallSite, function: Function, callee: Function) -> OutOfReach:
    return OutOfReach(
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
