"""One training with `FP16_Optimizer`: where the class is called, and for which optimizers and networks."""

from __future__ import annotations

from dataclasses import dataclass, field

from amp_migrate.older.found import Groups
from amp_migrate.older.interface import FP16_UTILS, Interface
from amp_migrate.older.sheet import Sheets, lines_of
from amp_migrate.older.words import FP16, FUSED, Words
from amp_migrate.older.wraps import Wrap


@dataclass(eq=False)
class Fp16:
    """Calls of FP16_Optimizer that one training has, with the names of their optimizers and networks."""

    wraps: list[Wrap]
    groups: Groups
    interface: Interface = FP16_UTILS
    networks: Groups = frozenset()
    sheets: Sheets = field(default_factory=Sheets)

    @property
    def words(self) -> Words:
        """How it is spoken of."""
        return FUSED if self.interface.fused else FP16

    @property
    def places(self) -> list[tuple[str, int]]:
        """The lines on which an FP16_Optimizer is made."""
        return lines_of((w.module, w.call) for w in self.wraps)
