"""The casting wrappers O1 puts around functions and methods."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from amp_migrate.equivalence.reference.amp.state import amp_state
from amp_migrate.equivalence.reference.casts.cache import cacheable
from amp_migrate.equivalence.reference.casts.tensors import (
    Cast,
    cast_all,
    cast_named,
    float_dtypes,
    to_float,
    to_half,
)

if TYPE_CHECKING:
    from amp_migrate.equivalence.reference.amp.handle import AmpHandle

Function = Callable[..., Any]
_MIXED = {torch.float16, torch.float32}


def cast_arguments(function: Function, cast: Cast, handle: AmpHandle, cached: bool) -> Function:
    """Cast every floating argument; fp32 parameters through the weight cache if `cached`."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not handle.is_active():
            return function(*args, **kwargs)
        if cached and handle.has_cache:
            cache = handle.cache
            args = tuple(cache.cast(cast, arg) if cacheable(arg) else arg for arg in args)
            kwargs = {k: cache.cast(cast, v) if cacheable(v) else v for k, v in kwargs.items()}
        return function(*cast_all(cast, args), **cast_named(cast, kwargs))

    return wrapper


def promote(function: Function) -> Function:
    """Cast mixed fp16 and fp32 arguments to fp32. Raises NotImplementedError on other mixes."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not amp_state.handle.is_active():
            return function(*args, **kwargs)
        dtypes = float_dtypes([*args, *kwargs.values()])
        if len(dtypes) <= 1:
            return function(*args, **kwargs)
        if dtypes != _MIXED:
            raise NotImplementedError(f"Do not know how to handle these types to promote: {dtypes}")
        return function(*cast_all(to_float, args), **cast_named(to_float, kwargs))

    return wrapper


def promote_sequence(function: Function) -> Function:
    """Cast the tensors of the first argument, a sequence, to fp32 if they mix fp16 and fp32."""

    @functools.wraps(function)
    def wrapper(seq: Any, *args: Any, **kwargs: Any) -> Any:
        if amp_state.handle.is_active() and {item.dtype for item in seq} == _MIXED:
            seq = cast_all(to_float, seq)
        return function(seq, *args, **kwargs)

    return wrapper


def match_self(function: Function) -> Function:
    """In-place methods: cast the other arguments to the dtype of an fp16 or fp32 `self`."""

    @functools.wraps(function)
    def wrapper(arg0: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not amp_state.handle.is_active() or arg0.dtype not in _MIXED:
            return function(arg0, *args, **kwargs)
        cast = to_half if arg0.dtype == torch.float16 else to_float
        return function(arg0, *cast_all(cast, args), **cast_named(cast, kwargs))

    return wrapper


def reject_half(function: Function, message: str) -> Function:
    """Raise NotImplementedError on any fp16 argument, casts enabled or not."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if torch.float16 in float_dtypes([*args, *kwargs.values()]):
            raise NotImplementedError(message)
        return function(*args, **kwargs)

    return wrapper


def reject_half_self(function: Function, message: str) -> Function:
    """In-place methods that need fp32: raise NotImplementedError on an fp16 `self`."""

    @functools.wraps(function)
    def wrapper(arg0: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if arg0.dtype == torch.float16:
            raise NotImplementedError(message)
        return function(arg0, *cast_all(to_float, args), **cast_named(to_float, kwargs))

    return wrapper
