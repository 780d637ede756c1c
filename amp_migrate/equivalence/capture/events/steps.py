"""Follow every optimizer step, taken or skipped, and what it did to the parameters."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from amp_migrate.equivalence.capture.events.digest import digest, norm, state_digests
from amp_migrate.equivalence.capture.events.registry import Registry, current
from amp_migrate.equivalence.capture.recorder import Recorder


class Steps:
    """Torch's global step hooks; they also fire under Apex, whose step ends in the class method."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        self.recorder = recorder
        self.registry = registry
        self.attempts = 0
        self._inside: list[int] = []
        self._before: list[Tensor] = []
        self._grad_norm = 0.0
        self._kicked = False

    def install(self) -> None:
        """Start following."""
        register_optimizer_step_pre_hook(self._begin)
        register_optimizer_step_post_hook(self._end)

    def _begin(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._inside.append(id(optimizer))
        if len(self._inside) > 1:  # a wrapping optimizer (lookahead, LARC) steps the inner one
            return
        self._before = [parameter.detach().clone() for parameter in current(optimizer)]
        self._grad_norm = _grad_norm(optimizer)

    def _end(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._inside.pop()
        if self._inside:
            return
        # Fused optimizers are called even on overflow and skip inside their kernel.
        found_inf = vars(optimizer).get("found_inf")
        skipped = found_inf is not None and bool(found_inf)
        self._record(optimizer, skipped)
        if self.recorder.config.kick is not None and not self._kicked:
            self._kicked = True
            kick(current(optimizer), self.recorder.config.kick)

    def skipped(self, optimizer: Any) -> None:
        """Record a step that a loss scaler did not take."""
        self._before = []
        self._record(optimizer, skipped=True)

    def _record(self, optimizer: Any, skipped: bool) -> None:
        self.attempts += 1
        iteration = self.recorder.iteration
        if iteration is None:  # a step before the first backward
            return
        iteration.events += "s" if skipped else "S"
        parameters = list(current(optimizer))
        change = [now.detach() - old for now, old in zip(parameters, self._before, strict=False)]
        iteration.attempts.append(
            {
                "optimizer": self.registry.index(optimizer),
                "skipped": skipped,
                "lr": [float(group["lr"]) for group in optimizer.param_groups],
                "grad_norm": None if skipped else self._grad_norm,
                "update_norm": 0.0 if skipped else norm(change),
                "weight_norm": norm(parameters),
                "params": digest(parameters),
                "state": state_digests(optimizer),
            }
        )
        self._before = []


def _grad_norm(optimizer: Any) -> float:
    """Return the norm of the unscaled gradients; fused optimizers unscale in their kernel."""
    grads = [parameter.grad for parameter in current(optimizer) if parameter.grad is not None]
    scale = vars(optimizer).get("grad_scale")
    value = norm(grad.coalesce().values() if grad.is_sparse else grad for grad in grads)
    return value if scale is None else value / float(scale)


def kick(parameters: Any, seed: int) -> None:
    """Move every weight by one unit in the last place, up or down at random."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in parameters:
            if parameter.is_floating_point():
                up = torch.rand(parameter.shape, generator=generator).to(parameter.device) < 0.5
                away = torch.where(up, torch.inf, -torch.inf).to(parameter.dtype)
                parameter.copy_(torch.nextafter(parameter, away))
