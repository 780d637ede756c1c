"""Calls of the new text that give a function what it does not take, or too little: they raise where they ran."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

from amp_migrate.check.events.labels import called
from amp_migrate.check.events.sides import Key, Side, changed, differs, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.modules.binding import fits
from amp_migrate.project import CallSite, Function


def unfit(old: Side, new: Side) -> Iterator[tuple[Key, Difference]]:
    """Yield the calls that do not fit a function that they may run, where those of the old text did.

    Only what is written anew may have changed that, in the file that calls or in the one that is called.
    """
    written = {path for path, _ in changed(old, new)}
    written |= {path for path, _ in new.functions.keys() - old.functions.keys()}
    had = {(key(site.function), key(function)) for site, function in _unfit(old, written)}
    for site, function in _unfit(new, written):
        if (key(site.function), key(function)) not in had:
            what = f"`{called(site.call.func)}` is not called as {function.qualname}() wants it, which it may run:"
            yield differs(site.function, site.call, what)


def _unfit(side: Side, written: Set[str]) -> Iterator[tuple[CallSite, Function]]:
    """Yield the calls that do not fit a function, with that; a method may be called on its object or its class."""
    for function, sites in side.project.calls.sites.items():
        called_anew = function.module.path in written
        for site in sites:
            if not called_anew and site.function.module.path not in written:
                continue
            other = replace(site, bound=not site.bound)
            if not fits(site, function) and (function.cls is None or not fits(other, function)):
                yield site, function
