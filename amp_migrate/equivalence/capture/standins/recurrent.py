"""Let recurrent networks run under autocast on the CPU as cuDNN does: whole, in the lower dtype."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from amp_migrate.equivalence.capture.patching import wrap

_LAYERS = "lstm gru rnn_tanh rnn_relu"


def install() -> None:
    """Cast their inputs, states and weights; CPU autocast has no kernel for the one, and keeps the others in fp32."""
    functions: Any = torch._VF
    for name in _LAYERS.split():
        wrap(functions, name, _cast_whole)


def _cast_whole(original: Any) -> Any:
    def layer(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_autocast_enabled("cpu"):
            return original(*args, **kwargs)
        dtype = torch.get_autocast_dtype("cpu")
        with torch.autocast("cpu", enabled=False):
            return original(*(_cast(value, dtype) for value in args), **kwargs)

    return layer


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, Tensor):
        return value.to(dtype) if value.dtype == torch.float32 else value
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(one, dtype) for one in value)
    return value
