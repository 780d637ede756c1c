"""`apex.parallel.LARC` has to be brought along.

## What it does
Nothing is changed. A finding names each use.

## Why
`apex.parallel`, and LARC with it, was removed from Apex in May 2025, and torch has nothing like it.

## Example
    optimizer = LARC(torch.optim.SGD(model.parameters(), lr=4.8), trust_coefficient=0.001, clip=False)

## Use instead
    from larc import LARC  # the class of Apex's apex/parallel/LARC.py (BSD license), copied into the project
    optimizer = LARC(torch.optim.SGD(model.parameters(), lr=4.8), trust_coefficient=0.001, clip=False)

## Safety
Report only. With the copied class, `scaler.step(optimizer)` takes the same steps as Apex did.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.plan import Decision, Status
from amp_migrate.rules.base import FileContext, Rule, Safety, decision
from amp_migrate.rules.rest import ORDER, uses

RULE = Rule("AMP303", "Apex's LARC is gone and has no counterpart", Safety.REPORT, order=ORDER)


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Report the uses of LARC in one file."""
    if not context.settings.enabled(RULE.code):
        return
    for site in uses(context, "apex.parallel.LARC"):
        message = "LARC was removed from Apex, and torch has none"
        advice = (
            "copy the class from apex/parallel/LARC.py of Apex 25.04 (BSD license) into the project and "
            "import it from there; scaler.step() works with it, learning rate schedulers need its `.optim`"
        )
        yield decision(RULE, Status.LEFT, site.module, site.node, message, advice=advice)
