"""Forward passes that feed a backward from further away: from above its loop, or from another method."""

from __future__ import annotations

import ast
from collections.abc import Callable

from amp_migrate.autocast.products import Products
from amp_migrate.autocast.slicing.effects import Effects
from amp_migrate.autocast.slicing.places import Needed, Place, touches, without
from amp_migrate.facts.paths import all_given, is_attribute_of, path, walk
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.order import Loop, levels, position
from amp_migrate.project.relatives import family
from amp_migrate.training.contexts import keeps_no_graph
from amp_migrate.training.forwards.forwards import Forward, Forwards, is_housekeeping
from amp_migrate.training.region import Region
from amp_migrate.training.types import wide

Barrier = Callable[[Module, ast.stmt], bool]
_SETUP = ("__init__", "__new__", "setup", "build", "compile")


class Earlier:
    """Finds statements ``features = network(x)`` that nothing else ties to the backward."""

    def __init__(
        self,
        project: Project,
        forwards: Forwards,
        barrier: Barrier,
        effects: Effects,
        products: Products,
    ) -> None:
        self._project = project
        self._forwards = forwards
        self._barrier = barrier
        self._effects = effects
        self._products = products

    def above(
        self, function: Function, before: list[ast.stmt], needed: Needed
    ) -> list[list[ast.stmt]]:
        """Return the runs of neighbouring statements above a loop that compute what is `needed` in it."""
        module = function.module
        chosen: list[ast.stmt] = []
        for stmt in reversed(before):
            if not isinstance(stmt, ast.Assign):
                continue
            if not touches(self._effects.writes(function, stmt), needed):
                continue
            renamed = self._effects.places.renamed(module, stmt, needed)
            renewed = self._effects.places.renewed(module, stmt)
            needed.intersection_update(without(needed, renewed))
            needed |= self._effects.reads(function, stmt) | renamed
            multiplies = self._products.among(function, [stmt])
            if self._runs_network(module, stmt) or multiplies:
                chosen.append(stmt)
        return _neighbours(module.tree, chosen[::-1])

    def methods(
        self, function: Function, kept: set[tuple[str, ...]]
    ) -> list[tuple[Function, list[ast.stmt]]]:
        """Return the statements of other methods that leave what `kept` leads to from ``self`` behind."""
        if function.cls is None or not kept:
            return []
        found = []
        for cls in family(function.cls):
            for method in cls.methods.values():
                if method is function or method.node is None or method.name in _SETUP:
                    continue
                found += self._left_by(method, kept)
        return found

    def calls_method(self, region: Region) -> bool:
        """Tell whether a region is no more than calls of methods that run a network."""
        return all(
            isinstance(stmt, ast.Expr)
            and is_attribute_of(region.function.receivers, getattr(stmt.value, "func", stmt.value))
            and self._forwards.strength(region.module, stmt) is Forward.NETWORK
            for stmt in region.statements()
        )

    def is_network(self, function: Function, place: Place) -> bool:
        """Tell whether an attribute is a network itself, which is no result of one, though methods bind it anew."""
        module = function.module
        return any(
            self._effects.places.of(module, node) == place
            and self._forwards.is_network(module, node)
            for node in function.own_nodes
            if isinstance(node, ast.Attribute)
        )

    def _left_by(
        self, method: Function, kept: set[tuple[str, ...]]
    ) -> list[tuple[Function, list[ast.stmt]]]:
        tree = method.module.tree
        needed = {Place(method.scope, method.receiver or "", steps) for steps in kept}
        stmts = [
            stmt
            for stmt in method.all_nodes
            if isinstance(stmt, ast.Assign)
            and touches(self._effects.places.writes(method.module, stmt), needed)
            and not keeps_no_graph(self._project, method.module, stmt)
            and self._runs_network(method.module, stmt)
        ]
        blocks: dict[int, list[ast.stmt]] = {}
        for stmt in stmts:
            blocks.setdefault(id(tree.block(stmt)), []).append(stmt)
        return [(method, run) for block in blocks.values() for run in _neighbours(tree, block)]

    def _runs_network(self, module: Module, stmt: ast.Assign) -> bool:
        """Tell whether an assignment keeps what a network returns, and does not make a network itself."""
        targets = [
            part
            for target in stmt.targets
            for part in (target.elts if isinstance(target, ast.Tuple | ast.List) else [target])
        ]
        if isinstance(stmt.value, ast.Lambda):
            return False  # it runs where it is called
        if any(self._forwards.is_network(module, target) for target in targets):
            return False
        calls = [part for part in walk(stmt.value) if isinstance(part, ast.Call)]
        direct = any(self._is_forward(module, call) for call in calls)
        return direct and not self._barrier(module, stmt)

    def _is_forward(self, module: Module, call: ast.Call) -> bool:
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr == "forward":
            func = func.value
        name = (path(func) or "").rpartition(".")[2]
        return (
            bool(call.args or call.keywords)
            and not is_housekeeping(name)
            and self._forwards.is_network(module, func)
            and self._forwards.call(module, call) is Forward.NETWORK
        )


def behind_setup(
    function: Function, before: list[ast.stmt], setup: Callable[[Function, ast.stmt], bool]
) -> list[ast.stmt]:
    """Leave out what runs once, before the training is set up: in fp32, under Apex too."""
    tree = function.module.tree
    once = not any(isinstance(lv, Loop) for stmt in before[:1] for lv in levels(tree, stmt))
    places = [i for i, stmt in enumerate(before) if setup(function, stmt)] if once else []
    return before[places[-1] + 1 :] if places else before


def _neighbours(tree: Tree, chosen: list[ast.stmt]) -> list[list[ast.stmt]]:
    runs: list[list[ast.stmt]] = []
    for stmt in chosen:
        if runs and position(tree, stmt) == position(tree, runs[-1][-1]) + 1:
            runs[-1].append(stmt)
        else:
            runs.append([stmt])
    return runs


def computing(
    project: Project, forwards: Forwards, module: Module, node: ast.expr
) -> list[ast.expr]:
    """Return an expression where it computes a loss; of an object that is made what that is given, where that does.

    By a criterion, or by what Apex and autocast run in fp32: ``output.pow(2).mean()``.
    """
    if isinstance(node, ast.Lambda):
        return []  # it computes where it is called
    if forwards.strength(module, node) < Forward.CRITERION and not _widens(project, module, node):
        return []
    made = isinstance(node, ast.Call) and project.constructed(node)
    parts = all_given(node) if isinstance(node, ast.Call) and made else []
    return [n for part in parts for n in computing(project, forwards, module, part)] or [node]


def _widens(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an expression computes a power of a variable, or by another function, in fp32; sums do not count."""
    parts = (part for part in walk(node) if not wide.is_sum(part))
    given = (each for part in parts for each in wide.computed(project, module, part))
    return any(not isinstance(each, ast.Constant) for each in given)
