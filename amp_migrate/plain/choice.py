"""Blocks that scale the loss under a flag, and hand it on as it is without: ``scale_loss(...) if fp16 else nullcontext(loss)``.

A GradScaler that is off hands the loss on too, so either way is read as the one that scales.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import acts, all_given, path, same, tail
from amp_migrate.flow import Kind
from amp_migrate.plain.held import Holding


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a `with` enters, the call of `amp.scale_loss` that it is read as, and the reads that go with that.

    `text` is how that call is written there, where it is not as it stands. `under` is the statement or the expression
    that has a stack enter it under a flag, and that is read as what enters it either way.
    """

    use: ast.expr
    scaling: ast.Call
    through: tuple[ast.expr, ...]
    text: str | None = None
    under: ast.If | ast.IfExp | None = None


class Choices:
    """Finds in one file what a `with` enters that comes down to `amp.scale_loss`, or to nothing but the loss."""

    def __init__(self, holding: Holding) -> None:
        self._holding = holding
        self._project, self._module = holding.project, holding.module

    def of(self, use: ast.expr) -> Chosen | None:
        """Return what a `with` enters, as a call of `amp.scale_loss`; None where it is one, or something else."""
        scaling = self._scaling(use)
        if scaling is use:
            under = self._under(scaling)
            return Chosen(use, scaling, (), under=under) if under is not None else None
        if scaling is not None:
            return Chosen(use, scaling, ())
        at = self._holding.moment(use, Kind.LOAD)
        stored = self._holding.stores(use, at) if at is not None else []
        found = [s for held in stored if (s := self._scaling(held.node)) is not None]
        if at is None or not found or not all(same(found[0], other) for other in found):
            return None
        scaling = found[-1]
        parts = [scaling.func, *scaling.args, *(k.value for k in scaling.keywords)]
        for held in stored:
            if self._scaling(held.node) is None and not self._is_loss(held.node, scaling):
                return None
            if not all(self._holding.stays(part, held.moment, at) for part in parts):
                return None
        return Chosen(use, scaling, (use,))

    def _under(self, scaling: ast.Call) -> ast.If | ast.IfExp | None:
        """Return what has a stack enter a call of `amp.scale_loss` under a flag, and takes the loss as it is without."""
        tree, loss = self._module.tree, scaling.args[0]
        call = tree.parent(scaling)
        if not isinstance(call, ast.Call) or tail(call) != "enter_context":
            return None
        up = tree.parent(call)
        if isinstance(up, ast.IfExp):
            return up if up.body is call and same(up.orelse, loss) and not acts(up) else None
        around = tree.parent(up) if isinstance(up, ast.Assign) else None
        if not isinstance(up, ast.Assign) or not isinstance(around, ast.If) or acts(around.test):
            return None
        if around.body != [up] or not isinstance(tree.parent(around), ast.With):
            return None
        target = up.targets[0] if len(up.targets) == 1 else None
        if not isinstance(target, ast.Name):
            return None
        if not around.orelse:
            return around if _are_one(target, loss) else None
        plain = around.orelse[0] if len(around.orelse) == 1 else None
        if not isinstance(plain, ast.Assign) or len(plain.targets) > 1:
            return None
        takes = same(plain.value, loss) and _are_one(plain.targets[0], target)
        return around if takes else None

    def _scaling(self, node: ast.expr) -> ast.Call | None:
        """Return the call of `amp.scale_loss` that an expression is, or is under a flag."""
        if isinstance(node, ast.Call):
            name = self._project.apex(self._module, node.func)
            return node if name == "apex.amp.scale_loss" and node.args else None
        if not isinstance(node, ast.IfExp) or acts(node):
            return None
        for one, other in ((node.body, node.orelse), (node.orelse, node.body)):
            scaling = self._scaling(one) if isinstance(one, ast.Call) else None
            if scaling is not None and self._is_loss(other, scaling):
                return scaling
        return None

    def _is_loss(self, node: ast.expr, scaling: ast.Call) -> bool:
        """Tell whether an expression is ``nullcontext(loss)`` for the loss that is scaled otherwise."""
        if not isinstance(node, ast.Call):
            return False
        if self._project.external(self._module, node.func) != "contextlib.nullcontext":
            return False
        given = all_given(node)
        return len(given) == 1 and same(given[0], scaling.args[0])


def is_chosen(site: Site) -> bool:
    """Tell whether a call of `amp.scale_loss` is put into a variable, stands under a flag or is what a lambda gives."""
    up = site.module.tree.parent(site.node)
    if isinstance(up, ast.Call) and tail(up) == "enter_context":
        return True
    return isinstance(up, ast.Assign | ast.AnnAssign | ast.IfExp | ast.Lambda)


def _are_one(one: ast.expr, other: ast.expr) -> bool:
    """Tell whether two expressions are one path, read or written."""
    return path(one) is not None and path(one) == path(other)
