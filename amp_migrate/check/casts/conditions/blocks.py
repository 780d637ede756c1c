"""What blocks of a new text cast to, and what switches them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.casts.casting import Casting
from amp_migrate.check.casts.differing import differs, where
from amp_migrate.check.events.sides import Key
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.below import outcomes
from amp_migrate.facts.paths import argument
from amp_migrate.project import Function, Project
from amp_migrate.training.origins.constants import ends
from amp_migrate.training.origins.reaching import reaching

_DTYPE = "is cast to a type that Apex did not use:"
_NO_BOOL = "is switched by what may be no bool, for which autocast raises TypeError:"
_TYPES: dict[str, frozenset[str | None]] = {
    "float16": frozenset({"torch.float16", "torch.half"}),
    "bfloat16": frozenset({"torch.bfloat16"}),
}
"""The names in torch of what autocast casts to."""


def new_blocks(old: Casting, new: Casting, dtype: str) -> Iterator[tuple[Key, Difference]]:
    """Yield the blocks that the old text does not have, and that cast to another type or may raise where they are entered."""
    known = {ast.unparse(call) for _, call, _ in old.blocks()}
    for function, call, types in new.blocks():
        if ast.unparse(call) in known:
            continue
        if types and not types <= _TYPES[dtype]:
            yield differs(_DTYPE, where(function, call), call)
        enabled = argument(call, "enabled")
        if enabled is not None and _may_be_no_bool(new.project, function, enabled):
            yield differs(_NO_BOOL, where(function, call), call)


def _may_be_no_bool(project: Project, function: Function, node: ast.expr) -> bool:
    """Tell whether an expression may come out as a text, a number or None that stands in the files."""
    found = (
        end
        for part in outcomes(node)
        for held in ends(project, reaching(project), function, part, through_calls=True)
        for end in outcomes(held)
    )
    return any(isinstance(e, ast.Constant) and not isinstance(e.value, bool) for e in found)
