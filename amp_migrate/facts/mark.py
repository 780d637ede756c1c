"""Enumerations that count among the states of an analysis."""

from __future__ import annotations

from enum import Enum


class Mark(Enum):
    """An enumeration whose members are hashed as the single objects that they are, not by their names."""

    __hash__ = object.__hash__
