"""Follow gradient clipping: the norm it saw and the limit it was given."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from amp_migrate.equivalence.capture.events.registry import Registry
from amp_migrate.equivalence.capture.patching import put
from amp_migrate.equivalence.capture.recorder import Recorder


def install(recorder: Recorder, registry: Registry) -> None:
    """Wrap both clipping functions of torch, before the program imports them by name."""
    _replace("clip_grad_norm_", _by_norm(recorder, registry))
    _replace("clip_grad_value_", _by_value(recorder))


def _replace(name: str, make: Any) -> None:
    clip_grad = torch.nn.utils.clip_grad
    wrapped = make(vars(clip_grad)[name])
    wrapped.__name__ = name
    put(clip_grad, name, wrapped)
    put(torch.nn.utils, name, wrapped)


def _by_norm(recorder: Recorder, registry: Registry) -> Any:
    def make(original: Any) -> Any:
        def clip_grad_norm_(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
            # `amp.master_params` and `model.parameters()` may hold the same tensors in another
            # order, and a sum of norms depends on the order in its last bit.
            places = registry.order()
            given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            ordered = sorted(given, key=lambda p: places.get(id(p), len(places)))
            scale = _scale(recorder)
            # torch adds 1e-6 to the norm that it divides by: of true gradients, as under Apex.
            _multiply(given, 1.0 / scale)
            total = original(ordered, max_norm / scale, *args, **kwargs) * scale
            _multiply(given, scale)
            _note(recorder, {"norm": float(total), "limit": float(max_norm)})
            return total

        return clip_grad_norm_

    return make


def _by_value(recorder: Recorder) -> Any:
    def make(original: Any) -> Any:
        def clip_grad_value_(parameters: Any, clip_value: Any, *args: Any, **kwargs: Any) -> Any:
            given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            largest = [float(p.grad.abs().max()) for p in given if p.grad is not None]
            _note(recorder, {"norm": max(largest, default=0.0), "limit": float(clip_value)})
            return original(given, clip_value, *args, **kwargs)

        return clip_grad_value_

    return make


def _scale(recorder: Recorder) -> float:
    """Return the power of two that a GradScaler has multiplied the gradients by, 1 where they are true."""
    iteration = recorder.iteration
    if iteration is None or not iteration.scales or not recorder.notes.get("grad_scaler"):
        return 1.0
    scale = 1.0 if "U" in iteration.events or iteration.attempts else iteration.scales[-1]
    return scale if math.frexp(scale)[0] == 0.5 else 1.0


def _multiply(parameters: list[Tensor], factor: float) -> None:
    for parameter in parameters if factor != 1.0 else ():
        if parameter.grad is not None:
            parameter.grad.detach().mul_(factor)


def _note(recorder: Recorder, clip: dict[str, float]) -> None:
    if recorder.iteration is not None:
        recorder.iteration.clips.append(clip)
        recorder.iteration.events += "C"
