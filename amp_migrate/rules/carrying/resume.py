"""What becomes of checkpoints that Apex wrote: read by the program with `--resume-compat`, or converted once.

A GradScaler takes from a checkpoint also how its scale changes, where Apex went by what the program asked for.
"""

from __future__ import annotations

import ast

from amp_migrate.apex.options import Options
from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import path
from amp_migrate.plan.model import Insert
from amp_migrate.project.rounds import runs_before
from amp_migrate.rules.base import Context
from amp_migrate.rules.calls.scaler_made import may_stay
from amp_migrate.training.steps import children_of

_INTERVAL = "2000"
# What APEX's state holds goes into that of the GradScaler; the tracker counts below the interval.
_CONVERSION = """\
if {old} in {owner} and {new} not in {owner}:
    apex_state = {owner}[{old}]["loss_scaler0"]
    {owner}[{new}] = {{
        **{scaler}.state_dict(),
        "scale": float(apex_state["loss_scale"]),
        "_growth_tracker": apex_state["unskipped"] % {interval},
    }}"""


def conversion(context: Context, site: Site, keys: list[ast.Constant], new: str) -> Insert | None:
    """Return the statements that convert an old checkpoint before it is first asked for its state.

    None where the state is not taken out of a checkpoint by a key, or before there is a GradScaler.
    """
    argument = site.call.args[0] if site.call.args else None
    if not isinstance(argument, ast.Subscript) or not keys:
        return None
    owner, interval = path(argument.value), _interval(context)
    if owner is None or interval is None:
        return None
    tree = site.module.tree
    asked = [key for key in keys if not isinstance(tree.parent(key), ast.Dict)]
    top = children_of(tree, [*map(tree.statement, asked), site.statement])[0]
    here = [c.top for c in context.creations.values() if c.site.function is site.function]
    if any(runs_before(context.unit.project, site.function, top, made) for made in here):
        return None
    scaler = context.scaler(site.function, site.node)
    text = _CONVERSION.format(
        old=tree.segment(keys[0]), new=new, owner=owner, scaler=scaler, interval=interval
    )
    return Insert(tree.span(top), text, after=False)


def command(context: Context, key: str = "") -> str:
    """Return the command that converts a checkpoint, with what it cannot read off the file."""
    options = [f"--new-key {key}"] if key else []
    interval = _interval(context)
    if interval != _INTERVAL:
        options.append(f"--growth-interval {interval or 'N'}")
    return " ".join(["amp-migrate convert-checkpoint", *options, "old.pt new.pt"])


def static(context: Context) -> str:
    """Return what to know of a GradScaler whose loss scale may be one that its settings keep; empty for others."""
    if not may_stay(context):
        return ""
    return (
        "with --static where the loss scale is a number; a GradScaler takes from a checkpoint whether its scale changes, "
        "so resume with the kind of loss scale that was saved"
    )


def _interval(context: Context) -> str | None:
    """Return how many steps without an overflow the scale grows after; None where that is no one number."""
    wanted = {_asked(context.unit.options[site]) for site in context.creations}
    only = wanted.pop() if len(wanted) == 1 else ""
    return only if only.isdecimal() else None


def _asked(options: Options) -> str:
    return options.growth_interval or _INTERVAL
