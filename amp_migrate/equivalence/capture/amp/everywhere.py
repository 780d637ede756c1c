"""Train an FP32 program in 16 bits without touching it: casts from each forward to its backward, and a fixed loss scale.

This is what casts alone do to a training, and so what one with AMP is measured by.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from amp_migrate.equivalence.capture.patching import wrap

SCALE = 2.0**16
_INNER = (
    "activation checkpointing runs a backward inside a backward, whose gradients are scaled already"
)


class Everywhere:
    """Enters autocast at the first call of a network, and leaves it where its backward begins.

    A call without gradients has it for itself. `scale` multiplies every loss and divides every gradient.
    """

    def __init__(self, device: str, dtype: torch.dtype, scale: float) -> None:
        self._device = device
        self._dtype = dtype
        self._scale = scale if dtype == torch.float16 else 1.0
        self._open: Any = None
        self._calls = threading.local()
        self._running: list[Tensor] = []

    def install(self) -> None:
        """Start casting."""
        wrap(torch.nn.Module, "__call__", self._called)
        wrap(torch.autograd, "backward", self._backward)
        wrap(torch.nn.functional, "binary_cross_entropy", self._in_fp32)
        for owner in (torch, torch.Tensor):
            wrap(owner, "masked_fill", _within_range)

    def _autocast(self, enabled: bool = True) -> Any:
        # A cached cast of weights would outlive their step where no block ends.
        return torch.amp.autocast(self._device, self._dtype, enabled, cache_enabled=False)

    def _called(self, original: Any) -> Any:
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self._calls, "inside", False) or self._running:
                return original(module, *args, **kwargs)
            self._calls.inside = True
            try:
                if torch.is_grad_enabled():
                    self._enter()
                    return original(module, *args, **kwargs)
                with self._autocast():
                    return original(module, *args, **kwargs)
            finally:
                self._calls.inside = False

        return __call__

    def _enter(self) -> None:
        if self._open is None and threading.current_thread() is threading.main_thread():
            self._open = self._autocast()
            self._open.__enter__()

    def _leave(self) -> None:
        if self._open is not None:
            self._open.__exit__(None, None, None)
            self._open = None

    def _backward(self, original: Any) -> Any:
        def backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> None:
            roots = [tensors] if isinstance(tensors, Tensor) else list(tensors)
            if self._running:
                if [id(root) for root in roots] != [id(root) for root in self._running]:
                    raise RuntimeError(_INNER)
                original(tensors, grad_tensors, *args, **kwargs)  # the same, through a mode
                return
            self._leave()
            hooks = [_divided(leaf, self._scale) for leaf in _leaves(roots)]
            self._running = roots
            try:
                with self._autocast(enabled=False):
                    original(roots, self._scaled(roots, grad_tensors), *args, **kwargs)
            finally:
                self._running = []
                for hook in hooks:
                    hook.remove()

        return backward

    def _scaled(self, roots: list[Tensor], given: Any) -> list[Tensor]:
        gradients = [given] if given is None or isinstance(given, Tensor) else list(given)
        gradients += [None] * (len(roots) - len(gradients))
        return [
            (torch.ones_like(root) if gradient is None else gradient) * self._scale
            for root, gradient in zip(roots, gradients, strict=True)
        ]

    def _in_fp32(self, original: Any) -> Any:
        def binary_cross_entropy(given: Tensor, *args: Any, **kwargs: Any) -> Any:
            with self._autocast(enabled=False):
                return original(given.float(), *args, **kwargs)

        return binary_cross_entropy


def _leaves(roots: list[Tensor]) -> Iterator[Tensor]:
    """Yield the tensors that a backward of `roots` gives gradients to."""
    waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if hasattr(node, "variable"):
            yield node.variable
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)


def _divided(leaf: Tensor, scale: float) -> Any:
    """Divide the gradients that a leaf is given from now on; what is returned takes it back."""
    return leaf.register_hook(lambda grad: grad / scale)  # type: ignore[no-untyped-call]


def _within_range(original: Any) -> Any:
    def masked_fill(given: Tensor, mask: Tensor, value: Any) -> Any:
        half = given.dtype in (torch.float16, torch.bfloat16) and not isinstance(value, Tensor)
        wide = half and torch.finfo(given.dtype).max < abs(value) < float("inf")
        return original(given.float() if wide else given, mask, value)

    return masked_fill


def install(dtype: str, device: str, scale: float | None) -> None:
    """Cast everywhere to `dtype`, a name in torch."""
    Everywhere(device, getattr(torch, dtype), scale or SCALE).install()
