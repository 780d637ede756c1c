"""Casting what goes into a model, what comes out of it, and its state dict."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from amp_migrate.equivalence.reference.settings import settings

Caster = Callable[[Any], Any]


def caster(dtype: torch.dtype) -> Caster:
    """A function casting a floating tensor, or any batch with a `to` method, to `dtype`."""

    def cast(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value.to(dtype)
        if not settings.castable(value):
            warnings.warn("An input tensor was not cuda.", stacklevel=2)
        return value.to(dtype) if value.is_floating_point() else value

    return cast


def apply(value: Any, cast: Caster) -> Any:
    """Cast every tensor inside `value`.

    Mappings come back as plain dicts and other iterables as `type(value)(generator)`, so a
    namedtuple raises TypeError. Strings, arrays and scalars pass.
    """
    if isinstance(value, torch.Tensor):
        return cast(value)
    if isinstance(value, str) or _is_array(value):
        return value
    if hasattr(value, "to"):
        return cast(value)
    if isinstance(value, Mapping):
        return {apply(key, cast): apply(item, cast) for key, item in value.items()}
    if isinstance(value, Iterable):
        build: Any = type(value)
        return build(apply(item, cast) for item in value)
    return value


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def patch_forward(model: torch.nn.Module, cast_input: Caster | None, cast_output: Caster) -> None:
    """Replace `model.forward`, on the instance, by one that casts."""
    original = model.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        if cast_input is not None:
            args = apply(args, cast_input)
            kwargs = apply(kwargs, cast_input)
        return apply(original(*args, **kwargs), cast_output)

    model.forward = forward


def float_state_dict(model: torch.nn.Module) -> None:
    """Make `model.state_dict()` return fp16 entries as fp32 copies."""

    def widen(module: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
        for key, value in state.items():
            if isinstance(value, torch.Tensor) and value.dtype == torch.float16:
                state[key] = value.to(torch.float32)

    for module in model.modules():
        module._register_state_dict_hook(widen)  # type: ignore[no-untyped-call]
