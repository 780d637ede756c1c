"""Follow every backward: its unscaled loss, the iteration boundary, the injected overflow."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from amp_migrate.equivalence.capture.events.registry import Registry
from amp_migrate.equivalence.capture.patching import wrap
from amp_migrate.equivalence.capture.recorder import Iteration, Recorder


class Backward:
    """Wraps ``torch.autograd.backward``, which ``Tensor.backward`` calls too."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        self.recorder = recorder
        self.registry = registry
        self.before: list[Callable[[Any], None]] = []
        self.after: list[Callable[[], None]] = []
        self._scaled: dict[int, tuple[weakref.ref[Tensor], float, float]] = {}
        self._pending_scale: float | None = None
        self._clean: bool | None = None
        self._dynamic = False
        self._depth = 0

    def install(self) -> None:
        """Start following."""

        def make(original: Any) -> Any:
            def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
                if self._depth:  # activation checkpointing runs a backward inside a backward
                    original(tensors, *args, **kwargs)
                    return
                self._begin(tensors)
                self._depth += 1
                try:
                    original(tensors, *args, **kwargs)
                finally:
                    self._depth -= 1
                self._end()

            return backward

        wrap(torch.autograd, "backward", make)

    def running(self) -> bool:
        """Return whether a backward is under way."""
        return self._depth > 0

    def look(self) -> None:
        """Look at gradients before Apex stashes them, for a backward that follows."""
        self._clean = self.registry.grads_clean() if self.recorder.at_boundary() else True

    def looked(self) -> bool:
        """Forget what was seen; return whether a backward followed, and not `torch.autograd.grad` alone."""
        unused, self._clean = self._clean, None
        return unused is None

    def _opened(self) -> Iteration:
        """Open an iteration if none is."""
        if self._clean is None:
            self.look()
        clean, self._clean = bool(self._clean), None
        return self.recorder.open(clean)

    def note_scaled(self, scaled: Any, loss: Any, scale: float, dynamic: bool) -> None:
        """Remember that `scaled` is `loss` times `scale`; `dynamic`: the scaler checks for inf."""
        self.awaits_scaled(scale, dynamic)
        if isinstance(scaled, Tensor):
            value, factor = self._raw(loss)
            self._scaled[id(scaled)] = (weakref.ref(scaled), value, scale * factor)
        elif isinstance(scaled, (list, tuple)):
            for one, raw in zip(scaled, loss, strict=True):
                self.note_scaled(one, raw, scale, dynamic)

    def awaits_scaled(self, scale: float, dynamic: bool) -> None:
        """Remember that the next backward is of a loss times `scale`; `dynamic`: the scaler checks for inf."""
        self._dynamic = dynamic
        self._pending_scale = scale

    def _begin(self, tensors: Any) -> None:
        iteration = self._opened()
        loss, scale = self._unscaled(tensors)
        iteration.losses.append(loss)
        iteration.scales.append(scale)
        iteration.events += "B"
        for callback in self.before:
            callback(tensors)

    def _unscaled(self, tensors: Any) -> tuple[float, float]:
        pending, self._pending_scale = self._pending_scale, None
        value, factor = self._raw(tensors)
        if factor != 1.0 or pending is None:
            return value, factor
        return value / pending, pending

    def _raw(self, tensors: Any) -> tuple[float, float]:
        """Return the loss before scaling and the scale; 1.0 for what no scaler returned."""
        known = self._scaled.get(id(tensors))
        if known is not None and known[0]() is tensors:
            return known[1], known[2]
        return _value(tensors), 1.0

    def _end(self) -> None:
        iteration = self.recorder.iteration
        if iteration is None:
            return
        dynamic, self._dynamic = self._dynamic, False
        if dynamic and not iteration.injected and self._overflows(iteration):
            iteration.injected = True
            self._inject()
        for callback in self.after:
            callback()

    def _overflows(self, iteration: Iteration) -> bool:
        config = self.recorder.config
        awaited = self.recorder.last_backwards if config.inject_last else 1
        return iteration.index in config.inject and len(iteration.losses) >= awaited

    def _inject(self) -> None:
        """Set one gradient element of every optimizer to infinity."""
        for parameters in self.registry.per_optimizer():
            for parameter in parameters:
                grad = parameter.grad
                if grad is not None and not grad.is_sparse and grad.numel():
                    with torch.no_grad():
                        grad[(0,) * grad.dim()] = float("inf")
                    break


def _value(loss: Any) -> float:
    if isinstance(loss, Tensor):
        return float(loss.detach().double().sum())
    return float(sum(_value(one) for one in loss))
