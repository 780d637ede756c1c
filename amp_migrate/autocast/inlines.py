"""What is computed inside a call and needs casts: it gets a statement of its own before that."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from amp_migrate.facts.tree import Tree
from amp_migrate.placement.steps.steps import Backward
from amp_migrate.project import Function
from amp_migrate.unit.cannot import Cannot
from amp_migrate.unit.unit import Unit

LOSS_NAMES = ("loss", "total_loss", "loss_value", "amp_loss")
_LOOPS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
OUTPUT_NAMES = ("output", "outputs", "prediction", "amp_output")


@dataclass(frozen=True, eq=False, slots=True)
class Inline:
    """A loss or output computed inside a call: `name = value` stands before `statement`, `node` becomes `name` in it or stays."""

    function: Function
    statement: ast.stmt
    node: ast.expr
    name: str
    replaces: bool

    @property
    def value(self) -> ast.expr:
        """What computes it, without the name that it may get in place: ``(loss := criterion(x, y))``."""
        return self.node.value if isinstance(self.node, ast.NamedExpr) else self.node


def of_backward(unit: Unit, backward: Backward) -> Inline:
    """Return the statement for the loss of a backward."""
    stmt = backward.module.tree.statement(backward.node)
    replaces = backward in [*unit.probes, *unit.beside]
    name = _given_name(backward.loss) or _free(backward.function, LOSS_NAMES)
    return Inline(backward.function, stmt, backward.loss, name, replaces)


def argument(function: Function, node: ast.expr, others: list[Inline], *, is_loss: bool) -> Inline:
    """Return the statement for an argument or a result, under a name that no other of its statement has."""
    stmt = function.module.tree.statement(node)
    if not _runs_once(function.module.tree, stmt, node):
        raise Cannot(
            "AMP904",
            function.module,
            node,
            "this needs casts, and stands in an expression that may run it several times or not at all",
            "give its result a name in a statement of its own, in a loop or branch as they are needed, then run again",
        )
    taken = {other.name for other in others if other.statement is stmt}
    names = LOSS_NAMES if is_loss else OUTPUT_NAMES
    return Inline(function, stmt, node, _given_name(node) or _free(function, names, taken), True)


def _runs_once(tree: Tree, stmt: ast.stmt, node: ast.expr) -> bool:
    """Tell whether an expression runs once whenever its statement is come to."""
    part: ast.AST = node
    for up in tree.ancestors(node):
        if isinstance(up, ast.Lambda) or (isinstance(up, _LOOPS) and part is not up.generators[0]):
            return False
        if isinstance(up, ast.comprehension) and part is not up.iter:
            return False
        if isinstance(up, ast.IfExp) and part is not up.test:
            return False
        if isinstance(up, ast.BoolOp) and part is not up.values[0]:
            return False
        if up is stmt:
            break
        part = up
    return not isinstance(stmt, ast.While)


def _given_name(loss: ast.expr) -> str | None:
    return loss.target.id if isinstance(loss, ast.NamedExpr) else None


def _free(function: Function, names: Iterable[str], taken: Iterable[str] = ()) -> str:
    top = function.node if function.node is not None else function.module.tree.module
    taken = {n.id for n in ast.walk(top) if isinstance(n, ast.Name)} | set(taken)
    return next((name for name in names if name not in taken), "scaled_input")
