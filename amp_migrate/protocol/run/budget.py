"""How many moments of a program runs may look at together, and how closely one looks at them."""

from __future__ import annotations

from dataclasses import dataclass

_HALVES = 4000
"""The moments after which a run tells half as many sets of facts apart, after twice as many a third, and so on."""


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


@dataclass
class Patience:
    """What is left of telling sets of facts apart: the more moments a run has met, the more each one counts, if it `wears`."""

    wears: bool
    met: int = 0

    def spend(self) -> None:
        """Note one more moment."""
        self.met += 1

    def weighed(self, apart: int) -> int:
        """Return as how many sets of facts so many count."""
        return apart * (1 + self.met // _HALVES) if self.wears else apart
