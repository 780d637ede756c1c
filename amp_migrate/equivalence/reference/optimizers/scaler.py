"""The loss scaler: static or dynamic, unscaling gradients and watching for overflow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch

from amp_migrate.equivalence.reference.amp.state import maybe_print


class LossScaler:
    """Halves the scale on overflow, doubles it after `scale_window` clean backwards.

    A static scaler never checks and never changes. The scale is a Python float.
    """

    warned_unscaling_non_fp32_grad = False

    def __init__(
        self,
        loss_scale: float | str,
        init_scale: float = 2.0**16,
        scale_factor: float = 2.0,
        scale_window: int = 2000,
        min_loss_scale: float | None = None,
        max_loss_scale: float = 2.0**24,
    ) -> None:
        # `scale_factor` is accepted and unused, as in Apex: the factor is always 2.
        self.dynamic = loss_scale == "dynamic"
        self._loss_scale: float = (
            min(max_loss_scale, init_scale) if isinstance(loss_scale, str) else loss_scale
        )
        self._max_loss_scale = max_loss_scale
        self._min_loss_scale = min_loss_scale
        self._scale_seq_len = scale_window
        self._unskipped = 0
        self._has_overflow = False

    def loss_scale(self) -> float:
        """The current scale."""
        return self._loss_scale

    def clear_overflow_state(self) -> None:
        """Forget the overflow of the last backward."""
        self._has_overflow = False

    def unscale(
        self,
        grads: Iterable[torch.Tensor],
        masters: Sequence[torch.Tensor],
        unused_scale: float | None = None,
        models_are_masters: bool = False,
        scale_override: float | None = None,
    ) -> None:
        """Write `grads / scale` into `masters`, stopping at the first overflow if dynamic."""
        if self._has_overflow:
            return
        scale = self._loss_scale if scale_override is None else scale_override
        if scale == 1.0 and models_are_masters and not self.dynamic:
            return
        for grad, master in zip(grads, masters, strict=True):
            self._note_dtype(master)
            if self._overflows(grad):
                return
            if master is not grad:
                master.copy_(grad)
            if scale != 1.0:
                master.mul_(1.0 / scale)

    def unscale_with_stashed(
        self,
        grads: Iterable[torch.Tensor],
        stashed: Sequence[torch.Tensor],
        masters: Sequence[torch.Tensor],
    ) -> None:
        """Write `grads / scale + stashed` into `masters`; only the new `grads` are checked."""
        if self._has_overflow:
            return
        inverse = 1.0 / self._loss_scale
        for grad, stash, master in zip(grads, stashed, masters, strict=True):
            self._note_dtype(master)
            if self._overflows(grad):
                return
            assert stash.dtype == master.dtype
            master.data = inverse * grad.detach().to(master.dtype) + 1.0 * stash.detach()

    def update_scale(self) -> bool:
        """Move the scale after a backward; True if the step must be skipped."""
        overflow = self._has_overflow and self.dynamic
        if overflow:
            self._loss_scale = self._loss_scale / 2.0
            if self._min_loss_scale:
                self._loss_scale = max(self._min_loss_scale, self._loss_scale)
            self._unskipped = 0
        else:
            self._unskipped += 1
        if self._unskipped == self._scale_seq_len and self.dynamic:
            self._loss_scale = min(self._max_loss_scale, self._loss_scale * 2.0)
            self._unskipped = 0
        return overflow

    def _overflows(self, grad: torch.Tensor) -> bool:
        # The sum, not the elements: a finite gradient whose fp32 sum overflows counts too.
        self._has_overflow = self.dynamic and not math.isfinite(float(grad.float().sum()))
        return self._has_overflow

    def _note_dtype(self, master: torch.Tensor) -> None:
        if LossScaler.warned_unscaling_non_fp32_grad or master.dtype == torch.float32:
            return
        LossScaler.warned_unscaling_non_fp32_grad = True
        maybe_print(
            f"Attempting to unscale a grad with type {master.type()} Unscaling non-fp32 grads may "
            "indicate an error. When using Amp, you don't need to call .half() on your model."
        )
