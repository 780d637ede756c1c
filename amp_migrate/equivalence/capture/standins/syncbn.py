"""Let torch's SyncBatchNorm run on the CPU, for which torch has no kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from amp_migrate.equivalence.capture.patching import put
from amp_migrate.equivalence.reference.parallel.syncbn import SyncBatchNorm

_COMPUTES = "_synchronizes _next_momentum _normalize_together _normalize_on_cpu _track"


def install() -> None:
    """Compute it as the reference of Apex's does, so that both sides of a comparison round alike."""
    own: Any = torch.nn.SyncBatchNorm
    for name in _COMPUTES.split():
        put(own, name, vars(SyncBatchNorm)[name])
    put(own, "forward", _forward)
    if torch.distributed.is_available():
        # DistributedDataParallel refuses the layer on CPU modules.
        parallel = torch.nn.parallel.DistributedDataParallel
        put(parallel, "_passing_sync_batchnorm_handle", lambda self, module: None)


def _forward(self: Any, input: torch.Tensor) -> torch.Tensor:
    self._check_input_dim(input)
    if self._synchronizes():
        together: torch.Tensor = self._normalize_together(input)
        return together
    return _BatchNorm.forward(self, input)
