"""The `enabled=` of what runs networks that Apex was not given: only O1 cast them."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import replace

from amp_migrate.apex.sites import Kind
from amp_migrate.autocast.casts import Casts, Told
from amp_migrate.flow.condition import UNKNOWN, Condition
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.creation import Creation
from amp_migrate.project import Function


class Patched(Casts):
    """Answers as `Casts` does, for where Apex patched the functions of torch; no GradScaler says that."""

    def __init__(self, unit: Unit, creations: list[Creation]) -> None:
        stated = defaultdict[Function, set[Condition]](set)
        for site in unit.of(Kind.INITIALIZE):
            stated[site.function].add(unit.options[site].patches)
        self._known = {function for function, found in stated.items() if len(found) == 1}
        super().__init__(unit, [self._patching(creation) for creation in creations])

    def _patching(self, creation: Creation) -> Creation:
        """Return an initialize with when it patched; unknown where the function of one made for several has others."""
        known = creation.site.function in self._known
        return replace(creation, casts=creation.patches if known else UNKNOWN)

    def _stated(self, creation: Creation) -> Condition:
        return self._unit.options[creation.site].patches

    def _by_scaler(self, function: Function, node: ast.AST, training: bool) -> Told | None:
        return None
