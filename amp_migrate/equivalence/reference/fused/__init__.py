"""Apex's fused optimizers, in plain torch operations."""

from amp_migrate.equivalence.reference.fused.adagrad import FusedAdagrad
from amp_migrate.equivalence.reference.fused.adam import FusedAdam
from amp_migrate.equivalence.reference.fused.lamb import FusedLAMB
from amp_migrate.equivalence.reference.fused.novograd import FusedNovoGrad
from amp_migrate.equivalence.reference.fused.old_adam import FusedAdamOfBoth, OldFusedAdam
from amp_migrate.equivalence.reference.fused.sgd import FusedSGD

__all__ = [
    "FusedAdagrad",
    "FusedAdam",
    "FusedAdamOfBoth",
    "FusedLAMB",
    "FusedNovoGrad",
    "FusedSGD",
    "OldFusedAdam",
]
