"""One training with `FP16_Optimizer`: where the class is called, and for which optimizers and networks."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from amp_migrate.older.found import Groups
from amp_migrate.older.sheet import Sheet, Unwritable
from amp_migrate.older.words import FP16, Words
from amp_migrate.project import Module


@dataclass(eq=False)
class Wrap:
    """A call of FP16_Optimizer, the statement that it makes, and what it is given by name."""

    module: Module
    call: ast.Call
    statement: ast.stmt
    given: dict[str, ast.expr]

    @property
    def inner(self) -> ast.expr:
        """The optimizer that it wraps."""
        return self.given["init_optimizer"]


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


def named(sheet: Sheet, call: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr]:
    """Return the arguments of a call by the names of their parameters."""
    if any(isinstance(a, ast.Starred) for a in call.args) or len(call.args) > len(names):
        unread = True
    else:
        unread = any(k.arg not in names for k in call.keywords)
    if unread:
        raise Unwritable(
            sheet.module,
            call,
            "the arguments of this call cannot be read",
            "write out its arguments, then run again",
        )
    found = dict(zip(names, call.args, strict=False))
    return found | {k.arg: k.value for k in call.keywords if k.arg is not None}
