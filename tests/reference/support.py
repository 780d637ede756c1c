"""Small models, data and digests for the tests of the reference."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn


def mlp() -> nn.Module:
    """Images of 4x4 to 4 classes: Linear, BatchNorm, ReLU, Linear."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Flatten(), nn.Linear(16, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 4)
    )


def cnn() -> nn.Module:
    """Images of 4x4 to 4 classes: convolution, BatchNorm, ReLU, Linear."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 4)
    )


MODELS: dict[str, Callable[[], nn.Module]] = {"mlp": mlp, "cnn": cnn}

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda params: torch.optim.SGD(params, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "adam": lambda params: torch.optim.Adam(params, lr=1e-2),
}


def batch(step: int, micro: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Eight images (8, 1, 4, 4) and labels (8,), the same for the same numbers."""
    generator = torch.Generator().manual_seed(100 * step + micro)
    images = torch.randn(8, 1, 4, 4, generator=generator)
    return images, torch.randint(0, 4, (8,), generator=generator)


def digest(tensors: Iterable[torch.Tensor]) -> str:
    """A hash of the bits and dtypes of all tensors."""
    total = hashlib.sha256()
    for tensor in tensors:
        data = tensor.detach().reshape(-1).contiguous()
        total.update(str(data.dtype).encode())
        total.update(data.view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def model_digest(*models: nn.Module) -> str:
    """A hash of all parameters and buffers."""
    return digest(t for m in models for t in [*m.parameters(), *m.buffers()])


def optimizer_digest(*optimizers: torch.optim.Optimizer) -> str:
    """A hash of all state tensors, in the order of the parameters."""
    states = [
        optimizer.state.get(param, {})
        for optimizer in optimizers
        for group in optimizer.param_groups
        for param in group["params"]
    ]
    return digest(
        state[name]
        for state in states
        for name in sorted(state)
        if isinstance(state[name], torch.Tensor)
    )


def put_inf(model: nn.Module) -> None:
    """Make one element of the first gradient infinite."""
    grad = next(model.parameters()).grad
    assert grad is not None
    grad.view(-1)[0] = float("inf")


def halves(*shape: int) -> torch.Tensor:
    """Ones in fp16."""
    return torch.ones(*shape, dtype=torch.float16)


def linear(value: float = 1.0, features: int = 2) -> nn.Linear:
    """A layer without bias whose weights all are `value`."""
    layer = nn.Linear(features, 1, bias=False)
    nn.init.constant_(layer.weight, value)
    return layer


def sgd(*models: nn.Module, lr: float = 1.0) -> torch.optim.SGD:
    """Plain SGD over all parameters."""
    return torch.optim.SGD([p for model in models for p in model.parameters()], lr=lr)
