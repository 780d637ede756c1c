"""Units in which nothing zeroes gradients, in any file, and steps in loops that never do."""

from __future__ import annotations

import ast
from functools import partial

from amp_migrate.availability.dead import is_uncalled
from amp_migrate.facts.below import every
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import clears
from amp_migrate.placement.reads.zeroing import windows
from amp_migrate.placement.windows.surviving import meets_again
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import kept
from amp_migrate.project.order import inside, loop_of
from amp_migrate.project.reach import reachable, reached_by
from amp_migrate.project.rounds import points_of
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.beliefs import MAY_CLEAR
from amp_migrate.training.steps import Step

_NAMING: tuple[type[ast.AST], ...] = (
    ast.Name, ast.Attribute, ast.Constant, ast.keyword, ast.alias, ast.FunctionDef,
)  # fmt: skip


def zeroes_nowhere(unit: Unit) -> bool:
    """Tell whether no file of the unit zeroes gradients in any way, although it trains again and again."""
    return (
        bool(unit.steps)
        and all(map(partial(_repeats, unit), unit.steps))
        and not any(map(_Alive(unit).anywhere, unit.project.modules.values()))
    )


def piling_up(unit: Unit) -> list[Step]:
    """Return the steps whose loops never zero gradients, which pile up there until something around them does."""
    alive = _Alive(unit)
    steps = dict.fromkeys((*(window.step for window in windows(unit)), *unit.live_steps()))
    return [step for step in steps if _piles(unit, step, alive)]


def _piles(unit: Unit, step: Step, alive: _Alive) -> bool:
    loop = loop_of(step.tree, step.anchor)
    trains = unit.live_backwards(step.function)
    if loop is None or not any(inside(step.tree, b.node, loop) for b in trains):
        return False
    parts = list(every(loop))
    run = (reached_by(unit.project, part) for part in parts)
    functions = frozenset().union(*run)
    nodes = [*parts, *(n for f in functions for n in f.all_nodes)]
    called = program_of(unit.project).calls.run
    lambdas = {f for n in nodes if isinstance(n, ast.Call) for f in called(n)} - functions
    return not any(map(alive.clears, (*nodes, *(n for f in lambdas for n in f.all_nodes))))


def _repeats(unit: Unit, step: Step) -> bool:
    """Tell whether a step stands in a loop, or a backward may run behind it that the step follows again."""
    if loop_of(step.tree, step.anchor) is not None:
        return True
    here = points_of(unit.project, step.function, step.call)
    return meets_again(unit, step.function, here, frozenset({step.function}))


def _named(node: ast.AST) -> str:
    """Return what a node names: a variable, an attribute, what a string says, an argument, what is imported or defined."""
    names = (getattr(node, name, None) for name in ("id", "attr", "value", "arg", "name"))
    return next((name for name in names if isinstance(name, str)), "")


def hands_on_clearing(unit: Unit) -> bool:
    """Tell whether something reads a method that may zero gradients, and no call is seen to run it."""
    alive = _Alive(unit)
    modules = (m for m in unit.project.modules.values() if _names_clearing(m))
    called = {m.node for run in unit.project.values.methods_called.values() for m in run}
    return any(
        alive.clears(node)
        and isinstance(node.ctx, ast.Load)
        and module.tree.call_of(node) is None
        and node not in called
        for module in modules
        for node in module.tree.nodes(ast.Attribute)
    )


def _names_clearing(module: Module) -> bool:
    return any(word in module.tree.text for word in MAY_CLEAR)


def _clearing(project: Project, module: Module) -> list[ast.AST]:
    """Return the nodes of a file that zero gradients, or name what may."""

    def found() -> list[ast.AST]:
        naming = _NAMING if _names_clearing(module) else ()
        nodes = module.tree.nodes(*naming, ast.Call, ast.Assign, ast.Delete)
        return [node for node in nodes if _may_clear(project, node)]

    return kept(project, (_clearing, module), found)


def _may_clear(project: Project, node: ast.AST) -> bool:
    if clears(node):
        return True
    run = project.values.methods_called.get(node, ()) if isinstance(node, ast.Call) else ()
    names = (_named(node), *(_named(method.node) for method in run))
    return any(word in name for name in names if name for word in MAY_CLEAR)


class _Alive:
    """Asks files whether they zero gradients, but for functions that nothing uses and that come to no Apex."""

    def __init__(self, unit: Unit) -> None:
        self._project = unit.project
        self._using = {site.function for site in unit.sites}

    def anywhere(self, module: Module) -> bool:
        """Tell whether a file zeroes gradients, or names what may."""
        return any(
            not self._is_dead(self._function(module, node))
            for node in _clearing(self._project, module)
        )

    def clears(self, node: ast.AST) -> bool:
        """Tell whether a node zeroes gradients, or names what may."""
        return _may_clear(self._project, node)

    def _function(self, module: Module, node: ast.AST) -> Function:
        defined = module.functions[node] if isinstance(node, ast.FunctionDef) else None
        return defined or self._project.function_of(module, node)

    def _is_dead(self, function: Function) -> bool:
        outermost = function.outward[-1]
        uncalled = is_uncalled(self._project, outermost)
        return uncalled and self._using.isdisjoint(reachable(self._project, outermost))
