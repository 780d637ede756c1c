"""What is computed inside a call and needs casts: it gets a statement of its own before that."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from amp_migrate.facts.paths import tail, variables
from amp_migrate.flow import Point
from amp_migrate.flow.changes import runs_code
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Function, Project
from amp_migrate.project.rounds import graph_of
from amp_migrate.training.beliefs import METHODS_WITHOUT_CASTS
from amp_migrate.training.steps import Backward

LOSS_NAMES = ("loss", "total_loss", "loss_value", "amp_loss")
OUTPUT_NAMES = ("output", "outputs", "prediction", "amp_output")
_WRITES = frozenset({"append", "extend", "insert", "pop", "popleft", "setdefault"})


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


def argument(
    project: Project, function: Function, node: ast.expr, others: list[Inline], *, is_loss: bool
) -> Inline:
    """Return the statement for an argument or a result, under a name that no other of its statement has."""
    stmt = function.module.tree.statement(node)
    if not _comes_first(project, function, stmt, node):
        raise Cannot(
            "AMP904",
            *function.at(node),
            "this needs casts, and stands where it runs after other code of its statement, several times or not at all",
            "give its result a name in a statement of its own, where it is to run, then run again",
        )
    taken = {other.name for other in others if other.statement is stmt}
    names = LOSS_NAMES if is_loss else OUTPUT_NAMES
    return Inline(function, stmt, node, _given_name(node) or _free(function, names, taken), True)


def _comes_first(project: Project, function: Function, stmt: ast.stmt, node: ast.expr) -> bool:
    """Tell whether an expression runs once whenever its statement is come to, and nothing before it that it may notice."""
    graph = graph_of(project, function)
    plain = graph.order(exceptions=False).edges
    own = set(graph.within(node))
    point = graph.within(stmt)[0]
    while point not in own:
        onward = plain[point.index]
        if len(onward) != 1 or not _goes_unnoticed(project, point):
            return False
        point = onward[0].target
    return not isinstance(stmt, ast.While)


def _goes_unnoticed(project: Project, point: Point) -> bool:
    """Tell whether what runs at a point is none of a network's business: a tensor moves, an object is made of what is there."""
    if not runs_code(point):
        return True
    call = point.node
    if not isinstance(call, ast.Call):
        return False
    if project.constructed(call):
        inits = project.callees(call)
        return all(not runs_code(p) for init in inits for p in graph_of(project, init).points)
    return tail(call) in METHODS_WITHOUT_CASTS - _WRITES and not tail(call).endswith("_")


def _given_name(loss: ast.expr) -> str | None:
    return loss.target.id if isinstance(loss, ast.NamedExpr) else None


def _free(function: Function, names: Iterable[str], taken: Iterable[str] = ()) -> str:
    taken = variables(function.scope) | set(taken)
    return next((name for name in names if name not in taken), "scaled_input")
