"""One training with `FP16_Optimizer`: where the class is called, and for which optimizers and networks."""

from __future__ import annotations

from dataclasses import dataclass, field

from amp_migrate.older.found import Groups
from amp_migrate.older.sheet import Sheet
from amp_migrate.older.words import FP16, Words
from amp_migrate.older.wraps import Wrap
from amp_migrate.project import Module


@dataclass(eq=False)
class Fp16:
    """Calls of FP16_Optimizer that one training has, with the names of their optimizers and networks."""

    wraps: list[Wrap]
    groups: Groups
    networks: Groups = frozenset()
    sheets: dict[Module, Sheet] = field(default_factory=dict)

    @property
    def words(self) -> Words:
        """How it is spoken of."""
        return FP16

    @property
    def places(self) -> list[tuple[str, int]]:
        """The lines on which an FP16_Optimizer is made."""
        return [(w.module.path, w.module.tree.span(w.call).line) for w in self.wraps]

    def sheet(self, module: Module) -> Sheet:
        """Return the sheet of a file."""
        return self.sheets.setdefault(module, Sheet(module))
