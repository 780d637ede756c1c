"""Apex's fused optimizers, in plain torch operations."""

from .adagrad import FusedAdagrad
from .adam import FusedAdam
from .lamb import FusedLAMB
from .novograd import FusedNovoGrad
from .sgd import FusedSGD

__all__ = ["FusedAdagrad", "FusedAdam", "FusedLAMB", "FusedNovoGrad", "FusedSGD"]
