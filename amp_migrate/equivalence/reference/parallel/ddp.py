"""Data parallelism: gradients averaged at the end of each backward."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist

from amp_migrate.equivalence.reference.parallel.collective import (
    average,
    broadcast_parameters,
    each_dtype_flat,
    is_distributed,
)


class DistributedDataParallel(torch.nn.Module):
    """Averages the gradients of `module` after every backward; without a process group it only wraps.

    Works as Apex with `delay_allreduce`: once per backward, unused parameters allowed. Buffers are
    never synchronized. The arguments that only schedule communication have no effect. Raises
    ValueError on `shared_param` and on trigger parameters with `delay_allreduce`.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        message_size: int = 10000000,
        delay_allreduce: bool = False,
        shared_param: Any = None,
        allreduce_trigger_params: Any = None,
        retain_allreduce_buffers: bool = False,
        allreduce_always_fp32: bool = False,
        num_allreduce_streams: int = 1,
        allreduce_communicators: Any = None,
        gradient_average: bool = True,
        gradient_predivide_factor: float = 1.0,
        gradient_average_split_factor: float | None = None,
        prof: bool = False,
    ) -> None:
        super().__init__()
        if shared_param is not None:
            raise ValueError("shared_param is no longer supported as an option.")
        if delay_allreduce and allreduce_trigger_params is not None:
            raise ValueError(
                "Setting allreduce_trigger_params is only valid if delay_allreduce=False."
            )
        self.module = module
        self.delay_allreduce = delay_allreduce
        self.allreduce_always_fp32 = allreduce_always_fp32
        self.gradient_average = gradient_average
        self.gradient_predivide_factor = gradient_predivide_factor
        self._disable_allreduce = False
        self._queued = False
        self._hooks: list[Any] = []
        if is_distributed():
            broadcast_parameters(module)
            self._follow_backward()

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's own forward."""
        self._queued = False
        return self.module(*inputs, **kwargs)

    def disable_allreduce(self) -> None:
        """Leave the gradients of the following backwards local."""
        self._disable_allreduce = True

    def enable_allreduce(self) -> None:
        """Average again."""
        self._disable_allreduce = False

    def _follow_backward(self) -> None:
        for param in self.module.parameters():
            if not param.requires_grad:
                continue
            # The node that accumulates into `.grad` lives only while something refers to it.
            node: Any = param.expand_as(param).grad_fn
            accumulate = node.next_functions[0][0]
            accumulate.register_hook(self._note_gradient)
            self._hooks.append(accumulate)

    def _note_gradient(self, *unused: Any) -> None:
        if self._queued or self._disable_allreduce:
            return
        self._queued = True
        engine: Any = torch.autograd.Variable._execution_engine
        engine.queue_callback(self._reduce)

    def _reduce(self) -> None:
        self._queued = False
        grads = [p.grad.detach() for p in self.module.parameters() if p.grad is not None]
        each_dtype_flat(grads, self._combine)

    def _combine(self, flat: torch.Tensor) -> torch.Tensor:
        reduced = flat.float() if self.allreduce_always_fp32 else flat
        if self.gradient_predivide_factor != 1.0:
            reduced.mul_(1.0 / self.gradient_predivide_factor)
        dist.all_reduce(reduced)
        if self.gradient_average:
            reduced.mul_(self.gradient_predivide_factor / dist.get_world_size())
        return reduced


class Reducer:
    """Averages gradients when `reduce` is called; given a module, makes its parameters equal first."""

    def __init__(self, module_or_grads_list: torch.nn.Module | Iterable[torch.Tensor]) -> None:
        self.module = None
        self.grads: list[torch.Tensor] = []
        if isinstance(module_or_grads_list, torch.nn.Module):
            self.module = module_or_grads_list
            if is_distributed():
                broadcast_parameters(self.module)
        else:
            self.grads = list(module_or_grads_list)

    def reduce(self) -> None:
        """Average over all ranks, in place."""
        if not is_distributed():
            return
        grads = self.grads
        if self.module is not None:
            grads = [p.grad.detach() for p in self.module.parameters() if p.grad is not None]
        each_dtype_flat(grads, average)
