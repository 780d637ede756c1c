"""Binary cross entropy on probabilities, which autocast refuses even for fp32 inputs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from amp_migrate.facts.paths import argument, path, walk
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Module
from amp_migrate.project.order import position
from amp_migrate.training.contexts import in_autocast
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.region import Region

NAMES = re.compile(r"BCELoss\b|binary_cross_entropy\b")


@dataclass(frozen=True, eq=False, slots=True)
class Bce:
    """A call of binary cross entropy: its statement stands in a region, or just behind a shortened one.

    `computed` is its first argument, where that runs a network and gets a statement of its own. `beside` tells that another
    loss, which autocast covers, stands in its statement.
    """

    module: Module
    call: ast.Call
    statement: ast.stmt
    inside: bool
    computed: bool = False
    beside: bool = False


def calls(unit: Unit, module: Module, node: ast.AST) -> list[ast.Call]:
    """Return the calls of binary cross entropy in a statement."""
    found = (n for n in walk(node) if isinstance(n, ast.Call) and probabilities(n) is not None)
    return [call for call in found if is_bce(unit, module, call.func)]


def probabilities(call: ast.Call) -> ast.expr | None:
    """Return what a binary cross entropy compares with its target."""
    return argument(call, "input", 0)


def is_bce(unit: Unit, module: Module, func: ast.expr, maybe: bool = False) -> bool:
    """Tell whether calling an expression is binary cross entropy, or may be."""
    external = unit.project.external(module, func)
    if external is not None:
        return external == "torch.nn.functional.binary_cross_entropy"
    if isinstance(func, ast.Call):
        return unit.project.external(module, func.func) == "torch.nn.BCELoss"
    if path(func) is None:
        return False
    made = unit.project.values.made_by(module, func)
    return "torch.nn.BCELoss" in made if maybe else made == ["torch.nn.BCELoss"]


def is_mentioned(unit: Unit) -> bool:
    """Tell whether any file of the project speaks of binary cross entropy on probabilities."""
    return any(NAMES.search(module.tree.text) for module in unit.project.modules.values())


def everywhere(unit: Unit, modules: Iterable[Module]) -> Iterator[tuple[Module, ast.Call]]:
    """Yield the calls of binary cross entropy in some files, those under an autocast of the source apart."""
    for module in modules:
        if NAMES.search(module.tree.text):
            for node in module.tree.nodes(ast.Call):
                if probabilities(node) is not None and is_bce(unit, module, node.func):
                    if not in_autocast(unit.project, module, node):
                        yield module, node


def all_kept_out(unit: Unit) -> tuple[list[Region], list[Bce]]:
    """Return the regions of a unit without the binary cross entropy that can leave them, and every such call."""
    kept: list[Region] = []
    entropies: list[Bce] = []
    for region in unit.regions:
        shortened, found = _keep_out(unit, region)
        entropies += found
        if shortened is not None:
            kept.append(shortened)
    return kept, entropies


def _keep_out(unit: Unit, region: Region) -> tuple[Region | None, list[Bce]]:
    """Return a region that ends before its binary cross entropy, where only the loss follows.

    Where forward passes follow too, the region stays and the call gets a region of its own that is off.
    """
    tree, module = region.module.tree, region.module
    statements = region.statements()
    found = [
        (i, stmt, call) for i, stmt in enumerate(statements) for call in calls(unit, module, stmt)
    ]
    if not found:
        return region, []
    first = found[0][0]
    direct = all(tree.statement(call) is stmt for _, stmt, call in found)
    later = [s for s in statements[first:] if not calls(unit, module, s)]
    alone = all(unit.forwards.strength(module, s) < Forward.CRITERION for s in later)
    combined = any(_forward_beside(unit, module, stmt) for _, stmt, _ in found)
    combined = combined or any(_loss_beside(unit, module, stmt) for _, stmt, _ in found)
    if not (direct and alone) or combined:
        return region, _inside(unit, module, [call for _, _, call in found])
    kept = [Bce(module, call, stmt, False) for _, stmt, call in found]
    if first == 0:
        return None, kept
    last = tree.block(region.first)[position(tree, region.first) + first - 1]
    return Region(module, region.function, region.first, last), kept


def _forward_beside(unit: Unit, module: Module, stmt: ast.stmt) -> bool:
    """Tell whether the statement of a binary cross entropy runs a network as well."""
    return unit.forwards.strength(module, stmt) is Forward.NETWORK


def _loss_beside(unit: Unit, module: Module, stmt: ast.stmt) -> bool:
    """Tell whether a plain statement computes another loss as well, by a criterion of torch."""
    found = calls(unit, module, stmt)
    return isinstance(stmt, STRAIGHT) and any(
        unit.forwards.call(module, node) is Forward.CRITERION and not unit.project.callees(node)
        for node in walk(stmt)
        if isinstance(node, ast.Call) and node not in found
    )


STRAIGHT = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
NOT_ALWAYS = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.comprehension, ast.ListComp, ast.GeneratorExp, ast.SetComp,
               ast.DictComp)  # fmt: skip


def _inside(unit: Unit, module: Module, found: list[ast.Call]) -> list[Bce]:
    """Return the calls that get a region of their own that is off, which must run no network.

    Raises `Cannot` where a network runs in the statement and cannot run before it.
    """
    tree = module.tree
    given = {call: p for call in found if (p := probabilities(call)) is not None}
    computed = [c for c, p in given.items() if unit.forwards.strength(module, p) > Forward.NONE]
    for call in computed:
        if not isinstance(tree.statement(call), STRAIGHT) or any(
            isinstance(up, NOT_ALWAYS) for up in tree.expressions(call)
        ):
            raise _mixed(module, call)
    before = {part for call in computed for part in ast.walk(given[call])}
    for call in found:
        for node in walk(tree.statement(call)):
            if isinstance(node, ast.Call) and node not in before and node not in found:
                if unit.forwards.call(module, node) is Forward.NETWORK:
                    raise _mixed(module, call)
    statements = {call: tree.statement(call) for call in found}
    return [
        Bce(module, call, stmt, True, call in computed, _loss_beside(unit, module, stmt))
        for call, stmt in statements.items()
    ]


def _mixed(module: Module, call: ast.Call) -> Cannot:
    return Cannot(
        "AMP904",
        module,
        call,
        "a forward pass, which needs autocast, stands in one statement with binary cross entropy, "
        "which raises under autocast",
        "run the network in a statement of its own before this one, then run again",
    )
