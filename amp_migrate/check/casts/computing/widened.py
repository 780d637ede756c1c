"""What a function computes in fp32 of whatever it has, as `torch.exp` does: what goes on with that needs no casts."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.check.apex.disabling import may_disable
from amp_migrate.facts.constants import number
from amp_migrate.project import Function, Project
from amp_migrate.training.beliefs import SHAPES
from amp_migrate.training.origins.losses import Losses
from amp_migrate.training.origins.reaching import Held, changed_by
from amp_migrate.training.types.wide import computed

_RETYPES = frozenset({None, "dtype", "out"})
_WIDENS = frozenset({"float", "double"})


class Widened:
    """Answers for the expressions of the functions of the old text.

    That casts were on where it is computed is asked there, of both texts: so it has to be in the same function, and in no
    block that takes the casts of Apex away.
    """

    def __init__(self, project: Project, losses: Losses) -> None:
        self._project = project
        self._losses = losses

    def __call__(
        self, function: Function, node: ast.expr, around: frozenset[ast.expr] = frozenset()
    ) -> bool:
        """Tell whether an expression is fp32 for certain, where casts are on; those `around` it are asked already."""
        if node in around:
            return False
        around |= {node}
        if isinstance(node, ast.Name):
            return self._are(function, self._losses.reaching(function, node), around)
        if isinstance(node, ast.UnaryOp):
            return self(function, node.operand, around)
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Pow | ast.MatMult):
            return self._of_both(function, node, around)
        if self._widens(function, node):
            return True
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return False
        shapes = node.func.attr in SHAPES and not self._project.callees(node)
        return shapes and self(function, node.func.value, around)

    def _of_both(self, function: Function, node: ast.BinOp, around: frozenset[ast.expr]) -> bool:
        """Tell whether both sides of an operator are fp32, or one is a number: one without dimensions widens no other."""
        sides = [s for s in (node.left, node.right) if not isinstance(s, ast.Constant)]
        return bool(sides) and all(self(function, side, around) for side in sides)

    def _are(self, function: Function, values: Iterable[Held], around: frozenset[ast.expr]) -> bool:
        """Tell whether the values of a variable are fp32, but for numbers that it begins with."""
        module = function.module
        tensors = [v for v in values if number(v) is None or changed_by(module, v) is not None]
        return bool(tensors) and all(
            isinstance(value, ast.expr)
            and self._is_bound(function, value)
            and self._is_left(function, value, around)
            for value in tensors
        )

    def _is_left(self, function: Function, value: ast.expr, around: frozenset[ast.expr]) -> bool:
        """Tell whether a variable is fp32 where it is given a value, or changed by it: a tensor keeps its type then."""
        target = changed_by(function.module, value)
        if target is None:
            return self(function, value, around)
        had = [v for v in self._losses.reaching(function, target) if v is not value]
        numbers = [
            v for v in had if number(v) is not None and changed_by(function.module, v) is None
        ]
        if len(numbers) < len(had) and not self._are(function, had, around):
            return False
        begins = bool(numbers) and number(value) is None
        return not (_multiplies(function, value) or (begins and not self(function, value, around)))

    def _is_bound(self, function: Function, value: ast.expr) -> bool:
        """Tell whether a value of a variable is bound to it in the function."""
        return (
            value in function.module.tree.parents
            and self._losses.reached.holder(function, value) is function
        )

    def _widens(self, function: Function, node: ast.expr) -> bool:
        """Tell whether an expression is a call or a power that gives fp32, and that is asked by itself."""
        module = function.module
        if isinstance(node, ast.Call):
            if any(k.arg in _RETYPES for k in node.keywords):
                return False
            func = node.func
            if isinstance(func, ast.Attribute) and func.attr in _WIDENS:
                return not self._project.callees(node)
        if not computed(self._project, module, node):
            return False
        return not may_disable(self._project, module, node)


def _multiplies(function: Function, value: ast.expr) -> bool:
    """Tell whether a variable is changed by a product of matrices with a value."""
    up = function.module.tree.parent(value)
    return isinstance(up, ast.AugAssign) and isinstance(up.op, ast.MatMult)
