"""Batch normalization over all ranks."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.nn.modules._functions import SyncBatchNorm as SyncFunction
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from amp_migrate.equivalence.reference.parallel.collective import is_distributed


class SyncBatchNorm(_BatchNorm):
    """BatchNorm for any number of dimensions, with statistics over `process_group` in training.

    `channel_last` means inputs of shape (N, ..., C); `fuse_relu` clamps the output at 0.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        channel_last: bool = False,
        fuse_relu: bool = False,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self.process_group = process_group
        self.channel_last = channel_last
        self.fuse_relu = fuse_relu

    def forward(self, input: torch.Tensor, z: torch.Tensor | None = None) -> torch.Tensor:
        """Normalize `input`, then add `z` and clamp if asked to."""
        moved = input.movedim(-1, 1) if self.channel_last and input.dim() > 2 else input
        if self._synchronizes():
            output = self._normalize_together(moved)
        else:
            output = super().forward(moved)
        if self.channel_last and input.dim() > 2:
            output = output.movedim(1, -1)
        if z is not None:
            output = output + z
        return output.relu() if self.fuse_relu else output

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _synchronizes(self) -> bool:
        uses_batch = self.training or not self.track_running_stats
        return uses_batch and is_distributed() and dist.get_world_size(self.process_group) > 1

    def _next_momentum(self) -> float:
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                return 1.0 / float(self.num_batches_tracked)
        return self.momentum or 0.0

    def _normalize_together(self, input: torch.Tensor) -> torch.Tensor:
        momentum = self._next_momentum()
        if input.is_cuda:
            group = self.process_group or dist.group.WORLD
            output: torch.Tensor = SyncFunction.apply(  # type: ignore[no-untyped-call]
                input,
                self.weight,
                self.bias,
                self.running_mean,
                self.running_var,
                self.eps,
                momentum,
                group,
                dist.get_world_size(group),
            )
            return output
        return self._normalize_on_cpu(input, momentum)

    def _normalize_on_cpu(self, input: torch.Tensor, momentum: float) -> torch.Tensor:
        # torch's own function has no CPU kernels.
        from torch.distributed.nn.functional import all_reduce

        values = input.float()
        dims = [dim for dim in range(input.dim()) if dim != 1]
        count = values.new_full((1,), values.numel() / values.size(1))
        local = torch.cat([values.sum(dims), (values * values).sum(dims), count])
        group = self.process_group or dist.group.WORLD
        sums: torch.Tensor = all_reduce(local, group=group)  # type: ignore[no-untyped-call]
        mean, mean_square = (sums[:-1] / sums[-1]).chunk(2)
        variance = mean_square - mean * mean
        self._track(mean.detach(), variance.detach(), float(sums[-1]), momentum)
        shape = [1, -1] + [1] * (input.dim() - 2)
        output = (values - mean.view(shape)) * torch.rsqrt(variance + self.eps).view(shape)
        if self.affine:
            output = output * self.weight.view(shape) + self.bias.view(shape)
        normalized: torch.Tensor = output.to(input.dtype)
        return normalized

    def _track(
        self, mean: torch.Tensor, variance: torch.Tensor, count: float, momentum: float
    ) -> None:
        if self.running_mean is None or self.running_var is None:
            return
        unbiased = variance * (count / (count - 1))
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), momentum)


def convert_syncbn_model(
    module: torch.nn.Module, process_group: Any = None, channel_last: bool = False
) -> torch.nn.Module:
    """Replace the batch norms below `module`, in place, and return it or its own replacement.

    The new layers have new, trainable parameters and are in training mode: an optimizer built
    before holds the old ones.
    """
    converted = module
    if isinstance(module, _InstanceNorm):
        return module
    if isinstance(module, _BatchNorm):
        converted = SyncBatchNorm(
            module.num_features,
            module.eps,
            module.momentum,
            module.affine,
            module.track_running_stats,
            process_group,
            channel_last,
        )
        converted.running_mean = module.running_mean
        converted.running_var = module.running_var
        converted.num_batches_tracked = module.num_batches_tracked
        if module.affine:
            converted.weight.data = module.weight.detach().clone()
            converted.bias.data = module.bias.detach().clone()
    for name, child in module.named_children():
        converted.add_module(name, convert_syncbn_model(child, process_group, channel_last))
    return converted


def create_syncbn_process_group(group_size: int) -> Any:
    """The group of `group_size` consecutive ranks this rank is in; None for 0, meaning all."""
    if group_size == 0:
        return None
    world = dist.get_world_size()
    assert world >= group_size
    assert world % group_size == 0
    mine = None
    # Every rank must take part in making every group.
    for start in range(0, world, group_size):
        group = dist.new_group(list(range(start, start + group_size)))
        if start <= dist.get_rank() < start + group_size:
            mine = group
    return mine
