"""Forward passes without gradients of the models that a unit initialized."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from amp_migrate.apex.apart import elements
from amp_migrate.apex.sites import Site
from amp_migrate.autocast import bce
from amp_migrate.autocast.evaluated.choosing import choice
from amp_migrate.autocast.evaluated.inference import (
    before_apex,
    evaluated,
    gives_no_graph,
    run_by,
    without_gradients,
)
from amp_migrate.autocast.evaluated.inside import called_inside, only_inside
from amp_migrate.autocast.evaluated.losses import (
    collects,
    losses_apart,
    losses_of_results,
    measured_apart,
    selects,
)
from amp_migrate.autocast.evaluated.shared import calls_aside, of_others
from amp_migrate.autocast.evaluated.taken import run_as_functions
from amp_migrate.autocast.evaluated.unfed import (
    covered,
    feeds_nothing,
    run_backward,
    runs_for_effect,
)
from amp_migrate.autocast.regions import has_its_own, merged
from amp_migrate.autocast.slicing.aside import Aside
from amp_migrate.autocast.slicing.deferred import through
from amp_migrate.autocast.slicing.effects import effects_of
from amp_migrate.autocast.slicing.finished import measures_in_fp32, only_draws, only_reshapes
from amp_migrate.facts.paths import all_given, defs, path, uses, walk
from amp_migrate.placement.finding.networks import initialized, is_made_anew
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.zeroing import is_zero_grad
from amp_migrate.project import Function, Module
from amp_migrate.project.order import position
from amp_migrate.training.beliefs import METHODS_WITHOUT_CASTS
from amp_migrate.training.contexts import runs_without_gradients
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.forwards.holders import called, holders
from amp_migrate.training.region import Part, Region, nodes_in
from amp_migrate.values.links.onward import Onward


def evaluations(unit: Unit) -> list[Region]:
    """Return the evaluation forwards of a unit that no training region holds, and that do not cast themselves.

    Every forward counts that feeds no backward pass, with gradients or without.
    """
    if unit.outside:
        return []
    models = initialized(unit)
    kept = holders(unit.project, unit.near, unit.project.values, models)
    bare = models | holders(unit.project, unit.near, unit.project.values, models, alone=True)
    near = unit.project.values.onward(models | kept)
    taken = unit.trained_nodes()
    found: list[Region] = []
    for module, node in unit.calls():
        if node in taken or node in unit.gone or not _may_run(unit, near, module, node):
            continue
        run = bare if all_given(node) else models
        one = called(unit.project, module, node)
        in_sight = one is node.func and unit.project.callees(node)
        if _runs(unit, module, node, run) or (not in_sight and _is_one(unit, module, one, kept)):
            found += _at_calls(unit, module, node, taken)
    for module, node in run_as_functions(unit, models):
        found += _at_calls(unit, module, node, taken)
    found += (helped := _through_helpers(unit, taken, models))
    found += [
        region_of(unit, function.module, function.module.tree.statement(call))
        for function, call in calls_aside(
            unit, lambda m, call: _may_run(unit, near, m, call) and _runs(unit, m, call, models)
        )
        if call not in unit.gone and not of_others(unit, function.module, call, models)
    ]
    found += _beside_training(unit, taken)
    found += (results := losses_of_results(unit, found, region_of, taken))
    taken |= nodes_in(results)
    if unit.plain:
        aside = Aside(unit.project, unit.forwards, effects_of(unit.project), is_zero_grad)
        found = [part for region in found for part in aside.parts(region)]
        found += losses_apart(unit, found)
    else:
        found += measured_apart(unit, found, models | kept)
    own = [r for r in merged(found) if not before_apex(unit, r)]
    training = {function for function, _ in unit.trained()}
    taken |= nodes_in([r for r in own if r.function in training])
    held = taken | (nodes_in(own) & nodes_in(helped))
    apart = (r for r in own if not called_inside(unit, r, taken) and not only_inside(unit, r, held))
    return merged([region for r in apart if not has_its_own(unit, region := through(unit, r))])


def _at_calls(
    unit: Unit, module: Module, node: ast.Call, taken: AbstractSet[ast.AST]
) -> list[Region]:
    """Return the regions of a forward: where it stands, or where the lambda that holds it is called."""
    return [
        region_of(unit, where, where.tree.statement(call))
        for where, call in run_by(unit.project, module, node)
        if call not in taken
        and (
            without_gradients(unit, where, call)
            or gives_no_graph(unit, call)
            or feeds_nothing(unit, where, call)
            if unit.scales
            else not covered(unit, where, call)
        )
    ]


def _through_helpers(unit: Unit, taken: AbstractSet[ast.AST], models: set[int]) -> list[Region]:
    """Return the evaluation calls of helpers that training wraps at the call."""
    helpers = {
        callee
        for module, node in unit.trained_calls()
        for callee in unit.project.callees(node)
        if unit.forwards.call(module, node) is Forward.NETWORK
    }
    return [
        region_of(unit, module, module.tree.statement(node))
        for module, node in unit.calls()
        if node not in taken
        and node not in unit.gone
        and helpers & set(unit.project.callees(node))
        and not of_others(unit, module, node, models)
        and (without_gradients(unit, module, node) or feeds_nothing(unit, module, node))
    ]


def _beside_training(unit: Unit, taken: AbstractSet[ast.AST]) -> list[Region]:
    """Return the forwards of other networks, as a teacher, in the functions that train: O1 cast them too."""
    functions = dict.fromkeys(function for function, _ in unit.trained())
    return [
        region_of(unit, function.module, function.module.tree.statement(node))
        for function in functions
        for node in function.calls
        if node not in taken
        and node not in unit.gone
        and (
            unit.forwards.is_network(function.module, node.func)
            or unit.forwards.runs_layers(function.module, node)
        )
        and without_gradients(unit, function.module, node)
    ]


def runs_in(unit: Unit, site: Site, parts: Iterable[Part]) -> bool:
    """Tell whether a forward of the models of one initialize stands in one of some parts."""
    models = elements(unit.options[site].arguments.get("models"))
    groups = {g for node in models for g in unit.project.values.groups(site.module, node)}
    return any(
        isinstance(node, ast.Call)
        and (_runs(unit, where.module, node, groups) or _helps(unit, where.module, node, groups))
        for where, part in parts
        for node in ast.walk(part)
    )


def _helps(unit: Unit, module: Module, call: ast.Call, groups: set[int]) -> bool:
    """Tell whether a call hands one of the models to a helper that runs it."""
    given = all_given(call)
    held = any(unit.project.values.groups(module, node) & groups for node in given if path(node))
    return held or unit.forwards.call(module, call) is Forward.NETWORK


def _may_run(unit: Unit, near: Onward, module: Module, call: ast.Call) -> bool:
    """Tell, at little cost, whether a call may be of a model or of one of its methods."""
    func: ast.expr = call.func
    if any(near.reaches(module, node) for node in evaluated(unit.project, module, call)):
        return True
    while isinstance(func, ast.Attribute):
        if near.reaches(module, func):
            return True
        func = func.value
    return near.reaches(module, func)


def _runs(unit: Unit, module: Module, call: ast.Call, models: set[int]) -> bool:
    func = call.func
    named = isinstance(func, ast.Name | ast.Attribute | ast.Subscript)
    if named and _is_one(unit, module, func, models):
        return True
    if any(_is_one(unit, module, node, models) for node in evaluated(unit.project, module, call)):
        return True
    if not isinstance(func, ast.Attribute) or unit.forwards.keeps_house(call):
        return False
    of_data = func.attr in METHODS_WITHOUT_CASTS and not unit.project.callees(call)
    if of_data or (
        isinstance(module.tree.parent(call), ast.Expr) and not runs_for_effect(unit, call)
    ):
        return False
    node = func.value
    while isinstance(node, ast.Attribute) and node.attr == "module":
        node = node.value
    return _is_one(unit, module, node, models) and func.attr not in ("module", "config")


def _is_one(unit: Unit, module: Module, node: ast.expr, models: set[int]) -> bool:
    found = unit.project.values.groups(module, node)
    return bool(found & models) or is_made_anew(unit, module, node)


def region_of(unit: Unit, module: Module, first: ast.stmt) -> Region:
    """Return the region of a forward in `first`: extend it to the last statement that computes a loss of its result."""
    tree = module.tree
    function: Function = unit.project.function_of(module, first)
    first = choice(module, first)
    last, known = _last_of_loss(unit, module, first, defs(first))
    around = tree.holder(first)
    while isinstance(around, ast.With):
        outer, known = _last_of_loss(unit, module, around, known)
        behind = _between(module, around, outer)
        if any(not selects(stmt, known) for stmt in behind) and not _trains(
            unit, module, around, behind
        ):
            first, last = around, outer
        around = tree.holder(around)
    return Region(module, function, first, last)


def _between(module: Module, around: ast.With, last: ast.stmt) -> list[ast.stmt]:
    """Return the statements behind one up to another of its block."""
    block = module.tree.block(around)
    return block[position(module.tree, around) + 1 : position(module.tree, last) + 1]


def _trains(unit: Unit, module: Module, around: ast.With, behind: list[ast.stmt]) -> bool:
    """Tell whether a loss behind a block without gradients is one that trains."""
    if not runs_without_gradients(unit.project, module, around):
        return False
    trained = {function.module.tree.statement(part) for function, part in unit.trained()}
    return any(stmt in trained for stmt in behind)


def _last_of_loss(
    unit: Unit, module: Module, first: ast.stmt, begun: set[str]
) -> tuple[ast.stmt, set[str]]:
    """Return the last statement behind a forward that computes a loss of what is known, else it, and what is known then."""
    last = first
    known, given = set(begun), set(begun)
    following = module.tree.block(first)[position(module.tree, first) + 1 :]
    while following and selects(following[0], known):
        last = following.pop(0)
        known |= defs(last)
        given |= defs(last)
    for stmt in following:
        if uses(stmt) & known and run_backward(unit, module, stmt) is not None:
            return stmt, known
        if unit.trains(module, stmt):
            break
        if not uses(stmt) & known or isinstance(stmt, ast.FunctionDef | ast.ClassDef):
            continue
        if bce.calls(unit, module, stmt):
            break
        if only_reshapes(stmt):
            known |= defs(stmt)
            given |= defs(stmt)
            continue
        if isinstance(stmt, ast.Return) and unit.forwards.measures(module, stmt):
            return stmt, known
        if not isinstance(stmt, _ASSIGNS):
            if not collects(unit, module, stmt, known):
                break
            last = stmt
            continue
        loss = unit.forwards.strength(module, stmt) >= Forward.CRITERION
        measured = (loss or not unit.plain) and _measures(unit, stmt, known if loss else given)
        computes = unit.forwards.measures(module, stmt) or measured
        if computes or measures_in_fp32(unit.project, module, stmt, known):
            last = stmt
        known |= defs(stmt)
    return last, known


_ASSIGNS = (ast.Assign, ast.AugAssign, ast.AnnAssign)


def _measures(unit: Unit, stmt: ast.stmt, known: set[str]) -> bool:
    """Tell whether a helper of the project gets what the model returned, and computes with it what casts change."""
    return any(
        isinstance(n, ast.Call)
        and any(
            not unit.forwards.indifferent(callee) and not only_draws(unit.project, callee)
            for callee in unit.project.callees(n)
        )
        and any(isinstance(a, ast.Name) and a.id in known for a in n.args)
        for n in walk(stmt)
    )
