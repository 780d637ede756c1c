"""Losses that a criterion computes of what networks gave."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet

from amp_migrate.autocast import bce
from amp_migrate.autocast.evaluated.inference import run_by, without_gradients
from amp_migrate.autocast.products import Products
from amp_migrate.autocast.slicing.finished import fp32_calls, runs_in_fp32, summed
from amp_migrate.facts.paths import all_given, called_alone, calls_anything, defs, path, uses, walk
from amp_migrate.placement.finding.networks import casts_these_alone
from amp_migrate.placement.finding.trains import Trains
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import kept, once
from amp_migrate.project.order import position
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.region import Region, nodes_in, run_in
from amp_migrate.training.types.known import types_of

_ASSIGNS = (ast.Assign, ast.AugAssign, ast.AnnAssign)
_MEASURES = (*_ASSIGNS, ast.Return, ast.Expr, ast.If, ast.While)


def selects(stmt: ast.stmt, known: set[str]) -> bool:
    """Tell whether a statement only takes a forward's result apart: ``loss, logits = outputs[:2]``."""
    if not isinstance(stmt, ast.Assign) or not isinstance(
        stmt.value, ast.Subscript | ast.Attribute
    ):
        return False
    return path(stmt.value.value) in known


def measured_apart(unit: Unit, found: list[Region], models: set[int]) -> list[Region]:
    """Return what computes in fp32 of what networks gave, as behind the loop of an evaluation, and no block holds.

    Of losses those count that feed no backward. With each goes what its block computes in fp32 for it:
    ``F.kl_div(F.log_softmax(output), target)``.
    """
    held = unit.trained_nodes() | nodes_in(found)
    under = unit.trained_below() | run_in(unit.project, found)
    measured = _Measured(unit, models)
    near = set(unit.near)
    places = [
        *((f, s) for f, s in _computing(unit.project) if f.module in near and measured(f, s)),
        *measured.by_lambdas(),
    ]
    return [
        _with_its_input(function, stmt, held)
        for function, stmt in places
        if function not in under and stmt not in held
    ]


@once
def _computing(project: Project) -> list[tuple[Function, ast.stmt]]:
    """Return the statements of a project that may compute a value by a call, a product or a power, with their functions."""
    return [
        (function, stmt)
        for function in project.functions()
        for stmt in function.own_nodes
        if isinstance(stmt, _MEASURES) and _computes(_measuring(stmt))
    ]


def _computes(node: ast.AST) -> bool:
    return calls_anything(node) or any(
        isinstance(part, ast.MatMult | ast.Pow) for part in ast.walk(node)
    )


def _measuring(stmt: ast.stmt) -> ast.AST:
    """Return what a statement computes itself: of a test or a loop, what it asks."""
    return stmt.test if isinstance(stmt, ast.If | ast.While) else stmt


class _Measured:
    """Tells whether a statement computes in fp32 of what some networks gave."""

    def __init__(self, unit: Unit, models: set[int]) -> None:
        self._unit = unit
        self._models = models
        self._losses = program_of(unit.project).training.losses

    def __call__(self, function: Function, stmt: ast.stmt) -> bool:
        module, node = function.module, _measuring(stmt)
        if any(stmt is taken.statement for taken in self._unit.between):
            return False
        if not self._unit.forwards.measures(module, node):
            found = self._by_type(function, node)
        else:
            found = node is stmt and self._is_loss(function, stmt)
        return found and not self._unit.trains(module, stmt)

    def by_lambdas(self) -> Iterator[tuple[Function, ast.stmt]]:
        """Yield the statements that call a lambda which computes so of what they hand in, with their functions."""
        project = self._unit.project
        for run, calls in project.values.calls_of_lambdas.items():
            module = project.module_of(run)
            function = self._losses.reached.holder(project.function_of(module, run), run.body)
            if not self._by_type(function, run.body):
                continue
            for where, call in (at for place in calls for at in run_by(project, *place)):
                stmt, holder = where.tree.statement(call), project.function_of(where, call)
                if isinstance(stmt, _MEASURES) and call in walk(_measuring(stmt)):
                    given = any(self._is_output(holder, a) for a in all_given(call))
                    if given and not self._unit.trains(where, stmt):
                        yield holder, stmt

    def _is_loss(self, function: Function, stmt: ast.stmt) -> bool:
        """Tell whether a criterion computes a loss of what the networks gave, for no backward."""
        return (
            not bce.calls(self._unit, function.module, stmt)
            and self._feeds_no_backward(function.module, stmt)
            and any(
                self._is_output(function, node)
                for call in walk(stmt)
                if isinstance(call, ast.Call)
                if self._unit.forwards.call(function.module, call) is Forward.CRITERION
                for node in all_given(call)
            )
        )

    def _feeds_no_backward(self, module: Module, stmt: ast.stmt) -> bool:
        """Tell whether no gradient comes to a statement; without them, what it computes may still choose batches."""
        return self._losses.computing.isdisjoint(walk(stmt)) or without_gradients(
            self._unit, module, stmt
        )

    def _by_type(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a softmax or the like is taken of what the networks gave, or that is multiplied, even as fp32."""
        module = function.module
        project = self._unit.project
        if any(self._is_cast(function, *each) for each in fp32_calls(project, module, node)):
            return True
        parts = summed(project, module, node)
        if any(self._is_output(function, part, narrow=True) for part in parts):
            return True
        factors = [] if casts_these_alone(self._unit) else _factors(project, module, node)
        return any(self._is_output(function, part, factor=True) for part in factors)

    def _is_cast(self, function: Function, call: ast.Call, given: list[ast.expr]) -> bool:
        """Tell whether what runs in fp32 is given what the networks gave, and not only as fp32 already."""
        if not any(self._is_output(function, part) for part in given):
            return False
        every = dict.fromkeys((*given, *all_given(call)))
        outputs = (part for part in every if self._is_output(function, part))
        return not all(self._is_wide(function, part) for part in outputs)

    def _is_output(
        self, function: Function, node: ast.expr, *, factor: bool = False, narrow: bool = False
    ) -> bool:
        node = node.value if isinstance(node, ast.Starred) else node
        found = self._losses.networks(function, node, cast=True, factor=factor, narrow=narrow)
        return bool(found & self._models) and not (narrow and self._is_wide(function, node))

    def _is_wide(self, function: Function, node: ast.expr) -> bool:
        """Tell whether a sum or a power is surely of fp32, or of whole numbers: casts change nothing."""
        return types_of(self._unit.project, self._losses).is_wide(function, node)


def _factors(project: Project, module: Module, node: ast.AST) -> list[ast.expr]:
    """Return what a statement or test multiplies; looked for once."""
    products = Products(project)
    return kept(project, (_factors, node), lambda: [*products.factors(module, node)])


def _with_its_input(function: Function, stmt: ast.stmt, held: AbstractSet[ast.AST]) -> Region:
    """Return a loss from the first statement of its block on that computes in fp32 what it is given."""
    tree = function.module.tree
    block = tree.block(stmt)
    first, wanted = stmt, uses(stmt)
    for earlier in reversed(block[: position(tree, stmt)]):
        if earlier in held or not isinstance(earlier, _ASSIGNS):
            break
        if defs(earlier) & wanted:
            wanted |= uses(earlier)
            if runs_in_fp32(earlier, uses(earlier), sums=False):
                first = earlier
    return Region(function.module, function, first, stmt)


def collects(unit: Unit, module: Module, stmt: ast.stmt, known: set[str]) -> bool:
    """Tell whether a loss is computed where it is collected, as in ``losses.append(criterion(output, target).item())``.

    One that is shown counts where it is computed of what the network gave as that is.
    """
    call = called_alone(stmt)
    if call is None or unit.project.callees(call):
        return False
    calls = (n for n in walk(stmt) if isinstance(n, ast.Call))
    given = {path(a.value if isinstance(a, ast.Subscript) else a) for n in calls for a in n.args}
    gathers = isinstance(call.func, ast.Attribute) or bool(given & known)
    return gathers and unit.forwards.measures(module, stmt)


def losses_apart(unit: Unit, found: list[Region]) -> list[Region]:
    """Return the losses of what networks gave further up, behind a test that may have run another one."""
    known: dict[Function, set[str]] = {}
    trains = Trains(unit)
    held = unit.trained_nodes() | nodes_in(found)
    for region in [*unit.regions, *found]:
        for stmt in region.statements():
            known.setdefault(region.function, set()).update(defs(stmt))
    return [
        Region(function.module, function, stmt, stmt)
        for function, names in known.items()
        for stmt in function.own_nodes
        if isinstance(stmt, _ASSIGNS) and stmt not in held and uses(stmt) & names
        if unit.forwards.strength(function.module, stmt) is Forward.CRITERION
        and not bce.calls(unit, function.module, stmt)
        and not trains(function.module, stmt)
    ]


def losses_of_results(
    unit: Unit,
    regions: list[Region],
    region_of: Callable[[Unit, Module, ast.stmt], Region],
    taken: AbstractSet[ast.AST],
) -> list[Region]:
    """Return where a loss is computed of what a function returns that runs an evaluation forward.

    The forward in the function needs no region of its own then.
    """
    found: list[Region] = []
    for function in dict.fromkeys(region.function for region in regions if not unit.plain):
        for site in unit.project.callers(function):
            module, call = site.function.module, site.call
            first = module.tree.statement(call)
            if call in taken or call in unit.gone or not isinstance(first, ast.Assign):
                continue
            region = region_of(unit, module, first)
            if region.last is not first and without_gradients(unit, module, call):
                found.append(region)
    return found
