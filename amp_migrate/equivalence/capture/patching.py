"""Replace an attribute of a library by a wrapper."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def wrap(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Set ``owner.name`` to ``make(owner.name)``, keeping its name and docstring."""
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(make(original)))


def put(owner: Any, name: str, value: Any) -> None:
    """Set ``owner.name``; for libraries whose stubs forbid the assignment."""
    setattr(owner, name, value)
