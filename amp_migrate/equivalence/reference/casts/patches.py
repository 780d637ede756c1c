"""Attribute patches that can be undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class _Saved(NamedTuple):
    owner: Any
    name: str
    was_own: bool
    value: Any


class Patches:
    """Replaces attributes of modules and classes and puts them back, last first."""

    def __init__(self) -> None:
        self._saved: list[_Saved] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set `owner.name`, remembering what it was or that it was inherited."""
        own = vars(owner)
        self._saved.append(_Saved(owner, name, name in own, own.get(name)))
        setattr(owner, name, value)

    def wrap(self, owner: Any, name: str, wrapper: Callable[[Any], Any]) -> None:
        """Wrap `owner.name` where there is one."""
        if hasattr(owner, name):
            self.replace(owner, name, wrapper(getattr(owner, name)))

    def restore(self) -> None:
        """Undo every patch."""
        for saved in reversed(self._saved):
            if saved.was_own:
                setattr(saved.owner, saved.name, saved.value)
            else:
                delattr(saved.owner, saved.name)
        self._saved.clear()
