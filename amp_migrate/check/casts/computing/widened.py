"""What a function computes in fp32 of whatever it has, as `torch.exp` does: what goes on with that needs no casts."""

from __future__ import annotations

import ast

from amp_migrate.check.apex.disabling import may_disable
from amp_migrate.project import Function, Project
from amp_migrate.training.beliefs import SHAPES
from amp_migrate.training.origins.losses import Losses
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
            values = self._losses.reaching(function, node)
            return bool(values) and all(
                isinstance(value, ast.expr)
                and self._is_bound(function, value)
                and self(function, value, around)
                for value in values
            )
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

    def _is_bound(self, function: Function, value: ast.expr) -> bool:
        """Tell whether a value of a variable is bound to it in the function, and not put into what it held."""
        module = function.module
        if (
            value not in module.tree.parents
            or self._losses.reached.holder(function, value) is not function
        ):
            return False
        return not isinstance(module.tree.statement(value), ast.AugAssign)

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
