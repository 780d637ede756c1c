"""How many moments of a program runs may look at together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Budget:
    """So many moments are `left`; `is_short` tells that a run had to end before its time."""

    left: int
    is_short: bool = False

    def allows(self) -> bool:
        """Take one moment, and tell whether it was there."""
        self.is_short = self.is_short or self.left <= 0
        self.left -= 1
        return not self.is_short
