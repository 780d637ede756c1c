"""Layer-wise adaptive rate control around an optimizer."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import torch


class LARC:
    """Rescales each gradient by a trust ratio of parameter and gradient norm before the step.

    With `clip` the resulting rate is at most the optimizer's own. Not an Optimizer: it has
    `step()` and `zero_grad()` without arguments.
    """

    def __init__(
        self, optimizer: Any, trust_coefficient: float = 0.02, clip: bool = True, eps: float = 1e-8
    ) -> None:
        self.optim = optimizer
        self.trust_coefficient = trust_coefficient
        self.clip = clip
        self.eps = eps

    @property
    def state(self) -> MutableMapping[torch.Tensor, Any]:
        """The wrapped optimizer's state."""
        state: MutableMapping[torch.Tensor, Any] = self.optim.state
        return state

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The wrapped optimizer's groups."""
        groups: list[dict[str, Any]] = self.optim.param_groups
        return groups

    @param_groups.setter
    def param_groups(self, value: list[dict[str, Any]]) -> None:
        self.optim.param_groups = value

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """As the wrapped optimizer."""
        state: dict[str, Any] = self.optim.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As the wrapped optimizer."""
        self.optim.load_state_dict(state_dict)

    def zero_grad(self) -> None:
        """As the wrapped optimizer."""
        self.optim.zero_grad()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As the wrapped optimizer."""
        self.optim.add_param_group(param_group)

    @torch.no_grad()
    def step(self) -> None:
        """Rescale the gradients, weight decay included, and step."""
        decays = [group.get("weight_decay", 0) for group in self.optim.param_groups]
        for group, decay in zip(self.optim.param_groups, decays, strict=True):
            # The decay goes through the trust ratio, so the optimizer must not add it again.
            group["weight_decay"] = 0
            for param in group["params"]:
                if param.grad is not None:
                    self._rescale(param, group["lr"], decay)
        self.optim.step()
        for group, decay in zip(self.optim.param_groups, decays, strict=True):
            group["weight_decay"] = decay

    def _rescale(self, param: torch.Tensor, lr: float, decay: float) -> None:
        assert param.grad is not None
        weight = torch.norm(param.detach())
        gradient = torch.norm(param.grad.detach())
        if weight == 0 or gradient == 0:
            return
        rate: Any = self.trust_coefficient * weight / (gradient + weight * decay + self.eps)
        if self.clip:
            rate = min(rate / lr, 1)
        param.grad.data += decay * param.data
        param.grad.data *= rate
