"""Cross entropy and clipping of apex.contrib."""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F


class SoftmaxCrossEntropyLoss:
    """Cross entropy per sample; labels equal to `padding_idx`, 0 unless told, cost nothing."""

    @staticmethod
    def apply(
        logits: torch.Tensor,
        labels: torch.Tensor,
        smoothing: float = 0.0,
        padding_idx: int = 0,
        half_to_float: bool = False,
    ) -> torch.Tensor:
        """Losses of shape (N,) for logits (N, C), in their dtype unless `half_to_float`."""
        losses = F.cross_entropy(
            logits.float(),
            labels,
            reduction="none",
            ignore_index=padding_idx,
            label_smoothing=smoothing,
        )
        return losses if half_to_float else losses.to(logits.dtype)


def clip_grad_norm_(
    parameters: torch.Tensor | Iterable[torch.Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> torch.Tensor:
    """Clip as torch does and return the total norm."""
    return torch.nn.utils.clip_grad_norm_(
        parameters, max_norm, norm_type=norm_type, error_if_nonfinite=error_if_nonfinite
    )
