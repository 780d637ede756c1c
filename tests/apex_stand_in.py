"""A small `apex.amp` for the runnable fixtures: O0 and O1, the dynamic loss scaler, on the CPU."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

_HALF = [
    (F, "linear"),
    (F, "conv1d"),
    (F, "conv2d"),
    (F, "conv_transpose2d"),
    (torch, "matmul"),
    (torch, "mm"),
    (torch, "bmm"),
    (torch.Tensor, "matmul"),
    (torch.Tensor, "__matmul__"),
]
_FLOAT = [
    (F, "cross_entropy"),
    (F, "nll_loss"),
    (F, "mse_loss"),
    (F, "l1_loss"),
    (F, "smooth_l1_loss"),
    (F, "binary_cross_entropy_with_logits"),
]


class LossScaler:
    """Apex's loss scaler: doubles every 2000 clean backwards, halves on overflow."""

    def __init__(self, loss_scale: float | str) -> None:
        self.dynamic = loss_scale == "dynamic"
        self._loss_scale = 2.0**16 if self.dynamic else float(loss_scale)
        self._unskipped = 0

    def loss_scale(self) -> float:
        return self._loss_scale

    def update(self, overflow: bool) -> None:
        if overflow and self.dynamic:
            self._loss_scale /= 2
            self._unskipped = 0
            return
        self._unskipped += 1
        if self.dynamic and self._unskipped == 2000:
            self._loss_scale = min(self._loss_scale * 2, 2.0**24)
            self._unskipped = 0


class _State:
    def __init__(self) -> None:
        self.enabled = False
        self.casts = False
        self.loss_scalers: list[LossScaler] = []
        self.cache: dict[torch.Tensor, torch.Tensor] = {}
        self.stash: dict[torch.Tensor, torch.Tensor | None] = {}
        self.pending: set[int] = set()


_state = _State()


def _half(value: Any) -> Any:
    if not (isinstance(value, torch.Tensor) and value.dtype == torch.float32):
        return value
    if not (value.is_leaf and value.requires_grad):
        return value.half()
    cached = _state.cache.get(value)
    if cached is None or cached.requires_grad != torch.is_grad_enabled():
        cached = _state.cache[value] = value.half()
    return cached


def _float(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype == torch.float16:
        return value.float()
    return value


def _casting(function: Callable[..., Any], cast: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not _state.casts:
            return function(*args, **kwargs)
        return function(*map(cast, args), **{k: cast(v) for k, v in kwargs.items()})

    return wrapper


def initialize(
    models: Any,
    optimizers: Any = None,
    enabled: bool = True,
    opt_level: str = "O1",
    loss_scale: float | str | None = None,
    num_losses: int = 1,
    **_: Any,
) -> Any:
    """Start mixed precision at O0 or O1; `casts_allowed` of this module switches O1's casts off."""
    result = models if optimizers is None else (models, optimizers)
    if not enabled:
        return result
    scale = ("dynamic" if opt_level in ("O1", "O2") else 1.0) if loss_scale is None else loss_scale
    _state.enabled = True
    _state.loss_scalers = [LossScaler(scale) for _ in range(num_losses)]
    if opt_level in ("O1", "O2") and casts_allowed:
        _state.casts = True
    return result


casts_allowed = True


def _parameters(optimizers: list[Any]) -> list[torch.Tensor]:
    return [p for o in optimizers for group in o.param_groups for p in group["params"]]


@contextlib.contextmanager
def scale_loss(
    loss: torch.Tensor,
    optimizers: Any,
    loss_id: int = 0,
    model: Any = None,
    delay_unscale: bool = False,
) -> Iterator[torch.Tensor]:
    """Yield the scaled loss; on exit unscale the gradients and add those of earlier backwards."""
    if not _state.enabled:
        yield loss
        return
    scaler = _state.loss_scalers[loss_id]
    several = optimizers if isinstance(optimizers, list) else [optimizers]
    if not scaler.dynamic and scaler.loss_scale() == 1.0:
        yield loss.float()
        _state.cache.clear()
        return
    if not delay_unscale:
        for optimizer in several:
            if id(optimizer) not in _state.pending:
                for p in _parameters([optimizer]):
                    _state.stash[p] = p.grad
                    p.grad = None
    yield loss.float() * scaler.loss_scale()
    _state.cache.clear()
    if delay_unscale:
        _state.pending.update(id(o) for o in several)
        return
    _state.pending.difference_update(id(o) for o in several)
    overflow = _unscale(_parameters(several), scaler)
    scaler.update(overflow)
    if overflow and scaler.dynamic:
        for optimizer in several:
            _skip_once(optimizer)


def _unscale(parameters: list[torch.Tensor], scaler: LossScaler) -> bool:
    overflow = False
    for p in parameters:
        old = _state.stash.pop(p, None)
        if p.grad is None:
            p.grad = old
            continue
        overflow = overflow or not bool(torch.isfinite(p.grad).all())
        p.grad.mul_(1.0 / scaler.loss_scale())
        if old is not None:
            p.grad.add_(old)
    return overflow


def _skip_once(optimizer: Any) -> None:
    if "step" in optimizer.__dict__ and getattr(optimizer.step, "skips", False):
        return
    before = optimizer.__dict__.get("step")

    def skip(*_: Any, **__: Any) -> None:
        if before is None:
            del optimizer.step
        else:
            optimizer.step = before

    skip.skips = True  # type: ignore[attr-defined]
    optimizer.step = skip


def master_params(optimizer: Any) -> Iterator[torch.Tensor]:
    """Yield the parameters the optimizer steps."""
    yield from _parameters([optimizer])


@contextlib.contextmanager
def disable_casts() -> Iterator[None]:
    """Run without O1's casts."""
    before, _state.casts = _state.casts, False
    yield
    _state.casts = before


def state_dict() -> dict[str, dict[str, float]]:
    """Return the loss scales as Apex stores them."""
    return {
        f"loss_scaler{i}": {"loss_scale": s._loss_scale, "unskipped": s._unskipped}
        for i, s in enumerate(_state.loss_scalers)
    }


def load_state_dict(state: dict[str, dict[str, float]]) -> None:
    """Take the loss scales of a checkpoint."""
    for scaler, saved in zip(_state.loss_scalers, state.values(), strict=True):
        scaler._loss_scale = saved["loss_scale"]
        scaler._unskipped = int(saved["unskipped"])


def register_half_function(module: Any, name: str) -> None:
    """Accept a registration; the fixtures register functions that O1 casts by their inner calls."""


def install() -> None:
    """Put this module in place of `apex` and patch the functions O1 casts."""
    for owner, name in _HALF:
        setattr(owner, name, _casting(getattr(owner, name), _half))
    for owner, name in _FLOAT:
        setattr(owner, name, _casting(getattr(owner, name), _float))
    apex = types.ModuleType("apex")
    amp = sys.modules[__name__]
    amp._amp_state = _state  # type: ignore[attr-defined]
    apex.amp = amp  # type: ignore[attr-defined]
    sys.modules["apex"] = apex
    sys.modules["apex.amp"] = amp
