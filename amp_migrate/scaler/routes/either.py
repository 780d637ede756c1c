"""Calls that may run another function than the one that takes the GradScaler: it takes one as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from amp_migrate.modules.binding import fits
from amp_migrate.plan.cannot import Cannot, OutOfReach, spoken
from amp_migrate.plan.model import AddArgument
from amp_migrate.project import CallSite, Function
from amp_migrate.scaler.routes.places import fills_all

if TYPE_CHECKING:
    from amp_migrate.scaler.home import Home


def reach(home: Home, function: Function) -> None:
    """Let the functions take the scaler, read or not, that calls may run in place of one that takes it.

    Raises `Cannot` where one of them cannot.
    """
    for site, callee in _others(home, function):
        try:
            home.take(callee, site.call)
        except Cannot:
            raise _unable(site, function, callee) from None
    _name_alike(home)


def _others(home: Home, function: Function) -> Iterator[tuple[CallSite, Function]]:
    """Yield the calls that hand the scaler on and may reach a function that takes none, with that."""
    project = home.project
    taking = [*home.threads, *home.carriers.parameters]
    able = {member for f in taking for member in (f, *project.family(f))}
    for site in project.callers(function):
        for callee in project.callees(site.call):
            if callee in able or home.name in callee.parameters.names:
                continue
            if fills_all(site, function) and _takes_one_more(site, callee):
                continue
            if not fits(site, callee) and not fits(replace(site, bound=not site.bound), callee):
                continue  # It raises TypeError there, with the scaler and without.
            yield site, callee


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


def _unable(site: CallSite, function: Function, callee: Function) -> OutOfReach:
    """Return why a call cannot hand the scaler on: one of the functions that it may run cannot take it."""
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
