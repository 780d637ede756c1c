"""User functions and names that O1 casts as well."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from amp_migrate.equivalence.reference.casts.tensors import Cast, to_float, to_half
from amp_migrate.equivalence.reference.casts.wrappers import Function, cast_arguments, promote

if TYPE_CHECKING:
    from amp_migrate.equivalence.reference.amp.handle import AmpHandle, NoOpHandle


class Registry:
    """Names waiting for the next O1 initialization, and the handle decorated functions obey."""

    def __init__(self) -> None:
        self.casts: dict[tuple[Any, str, Cast], None] = {}
        self.promotions: dict[tuple[Any, str], None] = {}
        self.handle: AmpHandle | NoOpHandle | None = None

    def clear(self) -> None:
        """Forget all, as in a new process."""
        self.casts.clear()
        self.promotions.clear()
        self.handle = None


registry = Registry()


def half_function(fn: Function) -> Function:
    """Decorate `fn` to take its floating tensors in fp16 under O1."""
    return _decorate(fn, lambda handle: cast_arguments(fn, to_half, handle, True))


def float_function(fn: Function) -> Function:
    """Decorate `fn` to take its floating tensors in fp32 under O1; its inside stays patched."""
    return _decorate(fn, lambda handle: cast_arguments(fn, to_float, handle, False))


def promote_function(fn: Function) -> Function:
    """Decorate `fn` to take mixed fp16 and fp32 tensors in fp32 under O1."""
    return _decorate(fn, lambda handle: promote(fn))


def register_half_function(module: Any, name: str) -> None:
    """Have `module.name` cast to fp16 from the next initialize on. Raises ValueError if absent."""
    _check(module, name)
    registry.casts[module, name, to_half] = None


def register_float_function(module: Any, name: str) -> None:
    """Have `module.name` cast to fp32 from the next initialize on. Raises ValueError if absent."""
    _check(module, name)
    registry.casts[module, name, to_float] = None


def register_promote_function(module: Any, name: str) -> None:
    """Have `module.name` promote from the next initialize on. Raises ValueError if absent."""
    _check(module, name)
    registry.promotions[module, name] = None


def _check(module: Any, name: str) -> None:
    if not hasattr(module, name):
        raise ValueError(f"No function named {name} in module {module}.")


def _decorate(fn: Function, wrap: Callable[[AmpHandle], Function]) -> Function:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        handle: Any = registry.handle
        if handle is None or not handle.is_active():
            return fn(*args, **kwargs)
        return wrap(handle)(*args, **kwargs)

    return wrapper
