"""Whether one scale_loss unscales the gradients of several optimizers, which Apex then skipped together."""

from __future__ import annotations

from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.training.origins.meant import are_several as hold_several
from amp_migrate.training.origins.meant import meant


def are_several(unit: Unit, block: ScaleLoss) -> bool:
    """Tell whether a scale_loss is given several optimizers, or none of those that step one by one."""
    given = block.optimizer_list()
    if len(given) != 1:
        return len(given) > 1
    module = block.site.module
    if hold_several(unit.project, module, given[0]):
        return True
    if None not in meant(unit.project, module, given[0]):
        return False
    values = unit.project.values
    stepped = {values.groups(step.module, step.optimizer) for step in unit.steps}
    groups = values.groups(module, given[0])
    return len(stepped) > 1 and not any(groups & one for one in stepped)
