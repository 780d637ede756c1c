"""Which arguments hold floating tensors, and casting them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from amp_migrate.equivalence.reference.settings import settings

Cast = Callable[[Any], Any]


def is_nested(value: object) -> bool:
    """Lists and tuples are looked into; nothing else is."""
    return isinstance(value, (tuple, list))


def is_float_tensor(value: Any) -> bool:
    """A floating tensor, or a list or tuple of nothing else."""
    if is_nested(value):
        return all(is_float_tensor(item) for item in value)
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def to_half(value: Any) -> Any:
    """`value`, a tensor or a list or tuple of them, in fp16."""
    if is_nested(value):
        return type(value)([to_half(item) for item in value])
    if not settings.castable(value) or value.dtype == torch.float16:
        return value
    return value.half()


def to_float(value: Any) -> Any:
    """`value`, a tensor or a list or tuple of them, in fp32."""
    if is_nested(value):
        return type(value)([to_float(item) for item in value])
    if not settings.castable(value) or value.dtype == torch.float32:
        return value
    return value.float()


def cast_all(cast: Cast, values: Iterable[Any]) -> list[Any]:
    """`values` with the floating tensors cast."""
    return [cast(value) if is_float_tensor(value) else value for value in values]


def cast_named(cast: Cast, values: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments with the floating tensors cast."""
    return {name: cast(v) if is_float_tensor(v) else v for name, v in values.items()}


def float_dtypes(values: Sequence[Any]) -> set[torch.dtype]:
    """The dtypes of all floating tensors in `values`."""
    dtypes: set[torch.dtype] = set()
    for value in values:
        if not is_float_tensor(value):
            continue
        if is_nested(value):
            dtypes |= float_dtypes(value)
        else:
            dtypes.add(value.dtype)
    return dtypes
