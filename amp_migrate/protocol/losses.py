"""Losses that are multiplied by the loss scale, where something else than a backward pass gets them."""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.faults import Breach, Fault, Place
from amp_migrate.training.reads.uses import Uses


def scaled_losses(program: Program) -> Iterator[Fault]:
    """Yield a fault for every use of a scaled loss as a number, under Apex as with a GradScaler."""
    training = program.training
    uses = Uses(program.project, training.objects, training.losses, program.calls.body)
    for module, node in uses.wrong():
        place = Place(module.path, node.lineno)
        yield Fault(Breach.SCALED_LOSS, place, (place,))
