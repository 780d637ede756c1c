"""Follow gradient clipping: the norm it saw and the limit it was given."""

from __future__ import annotations

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
            total = original(ordered, max_norm, *args, **kwargs)
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


def _note(recorder: Recorder, clip: dict[str, float]) -> None:
    if recorder.iteration is not None:
        recorder.iteration.clips.append(clip)
        recorder.iteration.events += "C"
