"""The process-wide AMP state, and the helpers that only need it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from amp_migrate.equivalence.reference.settings import settings

if TYPE_CHECKING:
    from amp_migrate.equivalence.reference.amp.handle import AmpHandle, NoOpHandle
    from amp_migrate.equivalence.reference.amp.properties import Properties
    from amp_migrate.equivalence.reference.optimizers.scaler import LossScaler


class AmpState:
    """What `amp.initialize` leaves behind.

    `opt_properties`, `loss_scalers` and `handle` do not exist before `initialize` sets them;
    programs probe for them with `hasattr`.
    """

    opt_properties: Properties
    loss_scalers: list[LossScaler]
    handle: AmpHandle | NoOpHandle
    min_loss_scale: float | None
    max_loss_scale: float
    hard_override: bool
    allow_incoming_model_not_fp32: bool
    verbosity: int

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything, as in a new process."""
        vars(self).clear()
        self.hard_override = False
        self.allow_incoming_model_not_fp32 = False
        self.verbosity = 1


amp_state = AmpState()


def warn_or_raise(message: str) -> None:
    """Raise RuntimeError, or print a warning where `hard_override` is set."""
    if not amp_state.hard_override:
        raise RuntimeError(message)
    print("Warning:  " + message)


def maybe_print(message: str, rank0: bool = False) -> None:
    """Print unless `verbosity` is 0; with `rank0` on the first rank only."""
    if settings.quiet or amp_state.verbosity <= 0:
        return
    if rank0 and torch.distributed.is_available() and torch.distributed.is_initialized():
        if torch.distributed.get_rank() == 0:
            print(message)
        return
    print(message)


def master_params(optimizer: Any) -> Iterator[torch.Tensor]:
    """Every parameter the optimizer updates: under O2 the fp32 masters, once they exist."""
    for group in optimizer.param_groups:
        yield from group["params"]
