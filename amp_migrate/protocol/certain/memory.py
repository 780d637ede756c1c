"""What a path remembers where a finding must be certain: a flag keeps its value, and AMP is on."""

from __future__ import annotations

import ast

from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.cfg.points import Edge, EdgeKind, Kind
from amp_migrate.flow.terms import Operand
from amp_migrate.project import Function
from amp_migrate.protocol.certain.switches import Switches
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.run.memory import Memory


class CertainMemory(Memory):
    """Takes paths that a program surely can take.

    No call raises an exception, a called function changes no attribute that a test reads, a test of what switches a GradScaler on comes out as
    it does while that is on, and paths beyond those that can be told apart are not followed.
    """

    most = 6
    forgets = False
    fewest = 1

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._switches = Switches(program.project, program.training.objects)
        self._known: dict[ast.expr, bool | None] = {}

    def along(self, function: Function, edge: Edge, known: Assumption) -> Assumption | None:
        """Return what is known at the end of an edge; None where AMP would be off there."""
        if edge.kind is EdgeKind.EXCEPTION and edge.source.kind is Kind.CALL:
            return None
        if edge.test is not None:
            if edge.test not in self._known:
                self._known[edge.test] = self._switches.truth(function.module, edge.test)
            if self._known[edge.test] is (not edge.truth):
                return None
        return super().along(function, edge, known)

    def _writes(self, call: ast.Call, operand: Operand) -> bool:
        return False
