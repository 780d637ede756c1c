"""What torch's synchronized batch normalization asks of process groups, which Apex's did without."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import tail
from amp_migrate.plan.model import Decision, Status
from amp_migrate.rules.base import FileContext, Rule, decision

_MAKES_GROUP = re.compile(r"init_process_group|init_(dist|deepspeed|parallel)\w*")
"""Functions that begin the default process group: torch's, and those that wrappers of it are called."""


def without_group(rule: Rule, context: FileContext, converted: Site) -> Iterator[Decision]:
    """Say of a conversion in programs without a process group that older torch raises there."""
    files = context.project.connected_with([context.module])
    calls = (call for near in files for call in near.tree.nodes(ast.Call))
    if context.spelling.torch_amp or any(_MAKES_GROUP.fullmatch(tail(call)) for call in calls):
        return
    message = (
        "nothing in the files given begins a process group: without one, torch's SyncBatchNorm raises in torch before 1.12, "
        "where Apex's normalized each batch by itself"
    )
    advice = "delete the conversion where no group begins, as with torch.nn.DataParallel: nothing is synchronized there"
    yield decision(rule, Status.NOTE, converted.module, converted.node, message, advice=advice)


def new_in_torch(rule: Rule, context: FileContext, site: Site) -> Iterator[Decision]:
    """Say from which torch on `new_subgroups` is there, where what is written runs on an older one."""
    if context.spelling.torch_amp:
        return
    message = "torch.distributed.new_subgroups is there from torch 1.9 on"
    advice = "with an older one, make the groups by torch.distributed.new_group"
    yield decision(rule, Status.NOTE, site.module, site.node, message, advice=advice)
