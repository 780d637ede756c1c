"""Where native blocks cast in programs that keep Apex."""

from __future__ import annotations

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.conditions.entries import Entries
from amp_migrate.check.casts.differing import same
from amp_migrate.check.events.sides import Side
from amp_migrate.flow.assumption import NOTHING
from amp_migrate.project import Function
from amp_migrate.project.programs import run_from


def beside_apex(
    new: Side, entries: Entries, item: Initialize
) -> tuple[Casting, dict[Function, frozenset[Casts]]]:
    """Return what native blocks cast once an initialize that stays has run, and what its programs run in which casts."""
    native = Casting(new.program, Facts(((item.function, item.on or NOTHING), *item.callers)))
    begin = same(new, entries.staying(item, new))
    files = run_from(new.project, begin)
    begun = native.spread(begin, inside_networks=True)
    return native, {f: casts for f, casts in begun.items() if f.module.path in files}
