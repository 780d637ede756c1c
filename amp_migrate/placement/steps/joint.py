"""Whether one scale_loss unscales the gradients of several optimizers, which Apex then skipped together."""

from __future__ import annotations

import ast

from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.training.origins.meant import meant


def are_several(unit: Unit, block: ScaleLoss) -> bool:
    """Tell whether a scale_loss is given several optimizers, or none of those that step one by one."""
    given = block.optimizer_list()
    if len(given) != 1:
        return len(given) > 1
    module = block.site.module
    written = list(meant(unit.project, module, given[0]))
    if any(value is not None and _holds_several(value) for value in written):
        return True
    if None not in written:
        return False
    values = unit.project.values
    stepped = {values.groups(step.module, step.optimizer) for step in unit.steps}
    groups = values.groups(module, given[0])
    return len(stepped) > 1 and not any(groups & one for one in stepped)


def _holds_several(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return len(node.elts) > 1
    return isinstance(node, ast.ListComp)
