"""The fp16 weight cache: one cast per fp32 parameter until the cache is cleared."""

from __future__ import annotations

from typing import Any

import torch

from amp_migrate.equivalence.reference.casts.tensors import Cast, is_nested


class CastCache:
    """Cast parameters by parameter."""

    def __init__(self) -> None:
        self._casts: dict[torch.Tensor, torch.Tensor] = {}

    def __len__(self) -> int:
        return len(self._casts)

    def __contains__(self, parameter: object) -> bool:
        return parameter in self._casts

    def clear(self) -> None:
        """Drop all casts."""
        self._casts.clear()

    def discard(self, parameter: torch.Tensor) -> None:
        """Drop the cast of one parameter."""
        self._casts.pop(parameter, None)

    def cast(self, cast: Cast, value: Any) -> Any:
        """The cached cast of `value`, a cacheable parameter or a list or tuple of them."""
        if is_nested(value):
            return type(value)([self.cast(cast, item) for item in value])
        cached = self._casts.get(value)
        if cached is not None and self._usable(value, cached):
            return cached
        fresh: torch.Tensor = cast(value)
        self._casts[value] = fresh
        return fresh

    @staticmethod
    def _usable(parameter: torch.Tensor, cached: torch.Tensor) -> bool:
        if parameter.requires_grad and cached.requires_grad and not _is_child(cached, parameter):
            raise RuntimeError(
                "x and cache[x] both require grad, but x is not cache[x]'s parent.  "
                "This is likely an error."
            )
        # A cast made under no_grad has no graph; in a grad-mode forward it must be made anew.
        return not torch.is_grad_enabled() or parameter.requires_grad == cached.requires_grad


def _is_child(cached: torch.Tensor, parameter: torch.Tensor) -> bool:
    node = cached.grad_fn
    if node is None:
        return False
    source: Any = node.next_functions[0][0]
    return source.variable is parameter


def cacheable(value: Any) -> bool:
    """An fp32 parameter, or a list or tuple of nothing else."""
    if is_nested(value):
        return all(cacheable(item) for item in value)
    return isinstance(value, torch.nn.Parameter) and value.dtype == torch.float32
