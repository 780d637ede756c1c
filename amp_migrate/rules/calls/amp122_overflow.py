"""Whether the last step overflowed is remembered by the GradScaler.

## What it does
Where a program asks the loss scalers of Apex for `_has_overflow`, writes a small GradScaler into the file that makes it,
which remembers whether its last `update()` found an overflow, and asks that.

## Why
`GradScaler` keeps no record of an overflow, but makes its scale smaller.

## Example
    for loss_scaler in amp._amp_state.loss_scalers:
        if loss_scaler._has_overflow:
            return True

## Use instead
    for loss_scaler in [scaler]:
        if loss_scaler.has_overflow:
            return True

## Safety
Faithful where the question comes after a whole step. Where several losses share an iteration that returned early, Apex
still gave the old answer for the losses that were not reached, and a note says so. A question between a backward
and its step, or under accumulation, is left, with the program's Apex code.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.placement.finding.overflow import reads
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, Edit, ReplaceExpression, Status
from amp_migrate.project import Module
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.rules.definitions import above, is_free

RULE = Rule("AMP122", "an overflow is remembered by the GradScaler", Safety.FAITHFUL, order=95)

_TEXT = '''\
class {name}({base}):
    """A GradScaler that remembers whether its last update() found an overflow."""

    has_overflow = False

    def update(self, new_scale=None):
        scale = self.get_scale()
        super().update(new_scale)
        if new_scale is None:
            self.has_overflow = self.get_scale() < scale'''


def decide(context: Context) -> Iterator[Decision]:
    """Ask the GradScaler for an overflow, and make it remember."""
    found = list(reads(context.unit))
    if not found:
        return
    first = found[0][0]
    _refuse_made_elsewhere(context, first)
    several = any(block.loss_id is not None for block in context.scaled.values())
    for site, node in found:
        tree = site.module.tree
        reader = tree.segment(node).rpartition(".")[0] if node is not site.node else ""
        text = f"{reader or context.scaler(site.function, node)}.has_overflow"
        edits: list[Edit] = [ReplaceExpression(tree.span(node), text)]
        message = f"an overflow is asked of the GradScaler: `{text}`"
        status = Status.MIGRATED if node is site.node else Status.ROUTINE
        yield decision(RULE, status, site.module, node, message, edits)
    if several:
        message = "Apex kept one answer for each loss; the GradScaler tells whether its last update() found an overflow"
        yield decision(RULE, Status.NOTE, first.module, first.node, message)
    making: dict[Module, list[Site]] = {}
    for site in context.creations:
        making.setdefault(site.module, []).append(site)
    for module, sites in making.items():
        yield _written(context, module, sites)


def _written(context: Context, module: Module, sites: list[Site]) -> Decision:
    """Write the class of the GradScaler above what makes it."""
    name = context.spelling.class_name
    if not is_free(module, name):
        advice = f"rename what is called {name} in this file, then run again"
        raise Cannot(
            "AMP909",
            module,
            sites[0].node,
            f"this file has a {name} already, and the GradScaler that remembers overflows needs the name",
            advice,
        )
    text = _TEXT.format(name=name, base=context.spelling.plain_class)
    message = f"`{name}` remembers whether its last update() found an overflow"
    return decision(
        RULE, Status.ROUTINE, module, sites[0].node, message, [above(module, sites, text)]
    )


def _refuse_made_elsewhere(context: Context, site: Site) -> None:
    """Refuse where more than the initializes makes a GradScaler, which would not remember."""
    home = context.unit.home
    if context.creations and not (
        home.module_level or home.carriers.empty or home.runners.used or any(home.returning.late())
    ):
        return
    raise Cannot(
        "AMP909",
        *site.at,
        "this asks for an overflow, and the program makes its GradScaler in more places than amp.initialize",
        "delete this and run again; then compare scaler.get_scale() before and after scaler.update(), which an "
        "overflow makes smaller",
    )
