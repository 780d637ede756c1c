"""The optimizer wrapper of the pre-2019 API."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from amp_migrate.equivalence.reference.amp.state import master_params, maybe_print
from amp_migrate.equivalence.reference.optimizers.scaler import LossScaler


class OptimWrapper:
    """An optimizer with one dynamic loss scaler per loss; one overflow skips the whole step."""

    def __init__(self, optimizer: Any, amp_handle: Any, num_loss: int) -> None:
        self._optimizer = optimizer
        self._amp_handle = amp_handle
        self._loss_idx = 0
        self._skip_next = [False] * num_loss
        self._loss_scaler = [LossScaler("dynamic") for _ in range(num_loss)]

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The wrapped optimizer's groups."""
        groups: list[dict[str, Any]] = self._optimizer.param_groups
        return groups

    @contextlib.contextmanager
    def scale_loss(self, loss: torch.Tensor) -> Iterator[torch.Tensor]:
        """Yield the scaled loss of the next loss index; unscale and check on exit."""
        if not self._amp_handle.is_active():
            yield loss
            return
        params = list(master_params(self._optimizer))
        earlier: list[torch.Tensor | None] = [None] * len(params)
        if self._loss_idx > 0:
            earlier = [None if p.grad is None else p.grad.detach().clone() for p in params]
            self._optimizer.zero_grad()
        scaler = self._loss_scaler[self._loss_idx]
        yield loss * scaler.loss_scale()
        scaler.clear_overflow_state()
        grads = [p.grad for p in params if p.grad is not None]
        scaler.unscale(grads, grads)
        self._skip_next[self._loss_idx] = scaler.update_scale()
        self._loss_idx += 1
        for param, grad in zip(params, earlier, strict=True):
            if grad is not None:
                param.grad = grad if param.grad is None else param.grad.add_(grad)

    def step(self, closure: Any = None) -> Any:
        """Step unless a loss overflowed. Raises NotImplementedError on a closure."""
        if not self._amp_handle.is_active():
            return self._optimizer.step(closure)
        self._loss_idx = 0
        for param in master_params(self._optimizer):
            self._amp_handle.remove_cache(param)
        if closure is not None:
            raise NotImplementedError(
                "The `closure` argument is unsupported by the amp optimizer wrapper."
            )
        if not any(self._skip_next):
            return self._optimizer.step()
        maybe_print("Gradient overflow, skipping update")
        self._skip_next = [False] * len(self._skip_next)
        return None

    def zero_grad(self) -> None:
        """As the wrapped optimizer."""
        self._optimizer.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        """As the wrapped optimizer."""
        state: dict[str, Any] = self._optimizer.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As the wrapped optimizer."""
        self._optimizer.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As the wrapped optimizer."""
        self._optimizer.add_param_group(param_group)
