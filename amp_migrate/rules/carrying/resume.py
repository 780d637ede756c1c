"""The conversion of an Apex checkpoint on loading, which `--resume-compat` writes into the program."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import path
from amp_migrate.plan.model import Insert
from amp_migrate.training.steps import children_of

# What APEX's state holds, and what GradScaler.load_state_dict wants; the tracker counts below the interval.
_CONVERSION = """\
if {old} in {owner} and {new} not in {owner}:
    apex_state = {owner}[{old}]["loss_scaler0"]
    {owner}[{new}] = {{
        "scale": float(apex_state["loss_scale"]),
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 2000,
        "_growth_tracker": apex_state["unskipped"] % 2000,
    }}"""


def conversion(site: Site, keys: list[ast.Constant], new: str) -> Insert | None:
    """Return the statements that convert an old checkpoint before it is first asked for its state.

    None where the state is not taken out of a checkpoint by a key.
    """
    argument = site.call.args[0] if site.call.args else None
    if not isinstance(argument, ast.Subscript) or not keys:
        return None
    owner = path(argument.value)
    if owner is None:
        return None
    tree = site.module.tree
    top = children_of(tree, [*map(tree.statement, keys), site.statement])[0]
    text = _CONVERSION.format(old=tree.segment(keys[0]), new=new, owner=owner)
    return Insert(tree.span(top), text, after=False)
