"""Casting recurrent layers and cells to fp16 under O1."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.modules import rnn

from amp_migrate.equivalence.reference.amp.state import amp_state
from amp_migrate.equivalence.reference.casts.tensors import is_float_tensor, to_half
from amp_migrate.equivalence.reference.casts.wrappers import cast_arguments

if TYPE_CHECKING:
    from amp_migrate.equivalence.reference.amp.handle import AmpHandle

_LAYERS = ("rnn_relu", "rnn_tanh", "gru", "lstm")


def patch_rnn(handle: AmpHandle) -> None:
    """Route the recurrent layers and cells of torch.nn through casting functions."""
    functions = torch._C._VariableFunctions
    casting = {name: _cast_layer(getattr(functions, name)) for name in _LAYERS}
    for name in _LAYERS:
        cell = getattr(functions, name + "_cell")
        casting[name + "_cell"] = cast_arguments(cell, to_half, handle, True)
    handle.patches.replace(rnn, "_VF", SimpleNamespace(**casting))
    handle.patches.wrap(rnn.RNNBase, "check_input", _accept_any_float)


def _accept_any_float(check_input: Callable[..., None]) -> Callable[..., None]:
    # Since torch 2.2 the layer refuses fp16 inputs to fp32 weights unless native autocast is on.
    @functools.wraps(check_input)
    def wrapper(self: Any, input: torch.Tensor, batch_sizes: torch.Tensor | None) -> None:
        check_input(self, input.to(self._flat_weights[0].dtype), batch_sizes)

    return wrapper


def _cast_layer(function: Callable[..., Any]) -> Callable[..., Any]:
    # (input, hx, weights, bias, layers, dropout, training, ...) or, packed,
    # (input, batch_sizes, hx, weights, bias, layers, dropout, ...).
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        if not amp_state.handle.is_active():
            return function(*args)
        at = 2 if isinstance(args[6], bool) else 3
        cast = [to_half(arg) if is_float_tensor(arg) else arg for arg in args]
        cast[at] = _half_weights(args[at])
        return function(*cast)

    return wrapper


def _half_weights(weights: list[torch.Tensor]) -> list[torch.Tensor]:
    """The weights in fp16, laid out in one buffer if they share one, as cuDNN wants them."""
    storage = weights[0].untyped_storage().data_ptr()
    if any(weight.untyped_storage().data_ptr() != storage for weight in weights):
        return [weight.half() for weight in weights]
    start = min(weight.storage_offset() for weight in weights)
    end = max(weight.storage_offset() + weight.numel() for weight in weights)
    buffer = weights[0].new_empty(end - start, dtype=torch.float16).untyped_storage()
    halves = []
    for weight in weights:
        half = weight.new_empty(0, dtype=torch.float16)
        half.set_(buffer, weight.storage_offset() - start, weight.shape, weight.stride())
        halves.append(half.copy_(weight))
    return halves
