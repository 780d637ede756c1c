"""Reads of ``_has_overflow``: whether a loss scaler of Apex found an overflow at its last backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Kind, Site, private
from amp_migrate.apex.visited import visit
from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.plan.cannot import Cannot, spoken
from amp_migrate.project import Function
from amp_migrate.project.order import Loop, levels
from amp_migrate.project.reach import reachable

_FIRST = ("loss_scalers", "[0]", "_has_overflow")
_INSTEAD = (
    "delete this and run again; then compare scaler.get_scale() before and after scaler.update(), which an overflow "
    "makes smaller"
)


def overflow_reads(site: Site) -> tuple[ast.expr, ...]:
    """Return the expressions by which a use of Apex's private state asks for an overflow."""
    if site.kind is not Kind.LOSS_SCALE or not isinstance(site.node, ast.Attribute):
        return ()
    if private(site) == _FIRST and isinstance(site.node.ctx, ast.Load):
        return (site.node,)
    found = visit(site)
    return found.overflows if found is not None else ()


def asks(unit: Unit) -> bool:
    """Tell whether a unit asks for an overflow, so that its GradScaler has to remember it."""
    return any(overflow_reads(s) for s in unit.of(Kind.LOSS_SCALE) if s.node not in unit.gone)


def refuse_unlike(unit: Unit, blocks: dict[Site, ScaleLoss]) -> None:
    """Refuse reads that Apex may answer otherwise than a GradScaler that remembers its last update."""
    for site in unit.of(Kind.LOSS_SCALE):
        if site.node in unit.gone or not overflow_reads(site):
            continue
        several = [b for b in blocks.values() if b.loss_id is not None]
        if visit(site) is None and several:
            raise _refused(
                site,
                "this asks for the overflow of one loss of several, and all losses share one GradScaler",
            )
        if any(b.delayed is not None or b.unchecked for b in blocks.values()):
            raise _refused(
                site,
                "this asks for an overflow, and some backward passes are not checked for one by Apex",
            )
        _refuse_between(unit, site)


def _refuse_between(unit: Unit, site: Site) -> None:
    """Refuse a read that need not come behind the step of all gradients that Apex checked."""
    trains = {b.function for b in unit.live_backwards()}
    steps = unit.live_steps()
    whole = [
        s.function
        for s in steps
        if _trains_all(unit, s.function, trains | {s.function for s in steps})
    ]
    if not whole:
        raise _refused(
            site,
            "this asks for an overflow, and the backward and the step stand in different functions",
        )
    if site.function in reachable(unit.project, whole[0]):
        raise _refused(
            site,
            f"{spoken(whole[0])} asks for an overflow besides training, so that it is not known to come behind the step",
            "ask in the code that calls a function which does the backward and the step, behind that call, then run again",
        )
    for step in steps:
        around = [up for up in levels(step.tree, step.anchor) if isinstance(up, ast.If | Loop)]
        if any(up is not step.anchor for up in around):
            raise _refused(
                site,
                "this asks for an overflow, and some backward passes have no step of their own",
            )


def _trains_all(unit: Unit, function: Function, trains: set[Function]) -> bool:
    return trains <= reachable(unit.project, function)


def _refused(site: Site, message: str, advice: str = _INSTEAD) -> Cannot:
    return Cannot("AMP909", *site.at, message, advice)


def reads(unit: Unit) -> Iterator[tuple[Site, ast.expr]]:
    """Yield every read of an overflow with the site it belongs to."""
    for site in unit.of(Kind.LOSS_SCALE):
        if site.node not in unit.gone:
            for node in overflow_reads(site):
                yield site, node
