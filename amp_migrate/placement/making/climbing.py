"""The guards out of which the GradScaler is made, so that it reaches every use."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from amp_migrate.apex.choices import acts, choices
from amp_migrate.apex.sites import Site
from amp_migrate.availability.spent import is_left_once, is_over, is_spent
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import defs, walk
from amp_migrate.facts.paths import uses as uses_of
from amp_migrate.facts.tree import FunctionNode, Tree
from amp_migrate.flow.condition import UNKNOWN, Condition, negate
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.emptied import asked_of_attribute
from amp_migrate.plan.cannot import OutOfReach
from amp_migrate.project import Function
from amp_migrate.project.imported import is_main
from amp_migrate.project.order import Loop, beside, dominates, inside, levels, position
from amp_migrate.project.reach import calls_to, runs_one


@dataclass
class Climb:
    """The statement at which the scaler is made, the guards passed on the way there, and whether one holds only once."""

    top: ast.stmt
    within: list[tuple[ast.If, Condition]] = field(default_factory=list)
    once: bool = False


def climb(
    unit: Unit, site: Site, uses: list[ast.AST], function: Function, start: ast.stmt | None
) -> Climb:
    """Leave the guards of an initialize until what stands there has always run where its scaler is used."""
    tree = site.module.tree
    trains = site in unit.home.inits.get(function, [])
    carried = any(stored.site.function is function for stored in unit.home.carriers.stored)
    carried = carried or unit.home.elsewhere.serves(site.module, unit.home.resolved)
    whole = unit.home.is_attribute(function) or not trains or carried
    found = Climb(start or site.statement)
    while not _reaches_all(tree, found.top, uses, whole):
        holder = tree.holder(found.top)
        early = _returning(tree, found.top, uses)
        if early is not None:
            found.within.append((early, guard(unit, site, early, positive=False)))
            found.top = early
        elif isinstance(holder, ast.If):
            if is_main(holder) and not unit.home.is_attribute(function):
                break
            if trains and is_spent(unit.project, site, holder, uses):
                _refuse_local(unit, site, holder)
                found.once = True
                break
            over = not trains and is_over(site, holder)
            positive = found.top in holder.body
            found.within.append((holder, UNKNOWN if over else guard(unit, site, holder, positive)))
            found.top = holder
        elif isinstance(holder, ast.With | ast.Try | ast.ExceptHandler):
            stmt = holder if isinstance(holder, ast.stmt) else tree.parents[holder]
            found.top = tree.statement(stmt)
        elif isinstance(holder, Loop) and _trains_in(unit, holder):
            if function.node is None and _called_behind(unit, site, found.top, uses):
                break
            alike = not any(uses_of(test.test) & defs(holder) for test, _ in found.within)
            kept = carried or (unit.home.is_attribute(function) and _leads_to_all(unit, function))
            if kept and alike and _runs_behind(unit, function, found.top):
                break
            raise _not_on_every_way(site)
        elif isinstance(holder, Loop) and not any(inside(tree, use, holder) for use in uses):
            found.top = holder
        elif not trains:
            break
        else:
            raise _not_on_every_way(site)
    if trains and unit.home.is_attribute(function):
        _pass_returns(unit, site, found)
    return found


def _pass_returns(unit: Unit, site: Site, found: Climb) -> None:
    """Leave the tests of a method that return before its object gets a scaler: whoever has the object may use it."""
    for stmt in _returns_above(site.module.tree, found.top):
        if stmt.orelse or not isinstance(stmt.body[-1], ast.Return):
            return
        if is_left_once(unit.project, site, stmt):
            found.once = True
            return
        found.within.append((stmt, guard(unit, site, stmt, positive=False)))
        found.top = stmt


def _returns_above(tree: Tree, top: ast.stmt) -> Iterator[ast.If]:
    """Yield the tests above a statement, in its block, that may return, nearest first."""
    for stmt in reversed(tree.block(top)[: position(tree, top)]):
        if isinstance(stmt, ast.If) and any(isinstance(n, ast.Return) for n in walk(stmt)):
            yield stmt


def _returning(tree: Tree, top: ast.stmt, uses: list[ast.AST]) -> ast.If | None:
    """Return the nearest test above a statement that only returns, and hands the scaler back there."""
    early = next(_returns_above(tree, top), None)
    if early is None or early.orelse or not isinstance(early.body[-1], ast.Return):
        return None
    return early if any(inside(tree, use, early) for use in uses) else None


def _trains_in(unit: Unit, loop: ast.For | ast.While | ast.AsyncFor) -> bool:
    """Tell whether a loop around an initialize runs what needs its scaler, which each round makes anew then."""
    users = set(unit.home.users)
    return any(
        isinstance(node, ast.Call) and runs_one(unit.project, node, users)
        for node in ast.walk(loop)
    )


def _runs_behind(unit: Unit, function: Function, top: ast.stmt) -> bool:
    """Tell whether whatever a function runs that needs the scaler stands behind a statement, in the same round of its loop."""
    users = set(unit.home.users) - {function}
    running = calls_to(unit.project, function, users)
    own = [use for use in unit.home.users.get(function, []) if use is not top]
    tree = function.module.tree
    return bool(running) and all(reaches(tree, top, node) for node in [*running, *own])


def _leads_to_all(unit: Unit, function: Function) -> bool:
    """Tell whether nothing but a function leads to what needs the scaler that it makes."""
    users = set(unit.home.users) - {function}
    above = closure(users, lambda f: () if f is function else _holders(unit, f))
    for user in (f for f in above if f is not function):
        calls = unit.project.callers(user)
        if not calls or any(call.function.node is None for call in calls):
            return False
        if any(unit.project.escapes(user)):
            return False
    return True


def _called_behind(unit: Unit, site: Site, top: ast.stmt, uses: list[ast.AST]) -> bool:
    """Tell whether all code of a file that needs its scaler, functions where they are called, runs behind a statement."""
    tree = site.module.tree
    called: list[Function] = []
    for use in uses:
        if isinstance(use, FunctionNode):
            called.append(site.module.functions[use])
        elif not reaches(tree, top, use):
            return False
    for function in closure(called, lambda f: _holders(unit, f)):
        for call in unit.project.callers(function):
            if call.function.node is None and not dominates(tree, top, call.call):
                return False
    return all(unit.project.callers(function) for function in called)


def _holders(unit: Unit, function: Function) -> list[Function]:
    """Return the functions that call one."""
    return [s.function for s in unit.project.callers(function) if s.function.node is not None]


def _not_on_every_way(site: Site) -> OutOfReach:
    return OutOfReach(
        "AMP901",
        *site.at,
        "amp.initialize does not run on every way to the code that scales and steps",
        "call amp.initialize once, before the training loop, then run again",
    )


def is_guarded(tree: Tree, node: ast.stmt) -> bool:
    """Tell whether a statement stands in a branch, so that its function may end without it."""
    holder = tree.holder(node)
    while isinstance(holder, ast.stmt) and not isinstance(holder, FunctionNode):
        if isinstance(holder, ast.If | ast.For | ast.While | ast.Try | ast.Match) and not (
            isinstance(holder, ast.If) and is_main(holder)
        ):
            return True
        holder = tree.holder(holder)
    return isinstance(holder, ast.ExceptHandler | ast.match_case)


def _refuse_local(unit: Unit, site: Site, holder: ast.If) -> None:
    """Raise `Cannot` where a guard that holds only once would make a scaler that does not outlive its function."""
    if unit.home.is_attribute(site.function) or unit.home.module_level:
        return
    raise OutOfReach(
        "AMP901",
        *site.at,
        f"amp.initialize runs once, under `{ast.unparse(holder.test)}`, and its GradScaler is needed again when that "
        "does not hold any more",
        "call amp.initialize once, before the loop, then run again",
    )


def refuse_forgotten(unit: Unit, site: Site) -> None:
    """Raise `Cannot` where a test around an initialize may say no when its function runs again, which has no scaler of its own then."""
    for level in levels(site.module.tree, site.node):
        if isinstance(level, ast.If) and is_spent(unit.project, site, level, []):
            _refuse_local(unit, site, level)


def _reaches_all(tree: Tree, top: ast.stmt, uses: list[ast.AST], whole: bool) -> bool:
    if whole and not isinstance(tree.holder(top), FunctionNode | ast.Module):
        return False
    return all(reaches(tree, top, use) for use in uses)


def reaches(tree: Tree, top: ast.stmt, use: ast.AST) -> bool:
    """Tell whether what stands before a statement has always run where a use stands."""
    if use is top or (isinstance(top, ast.If) and inside(tree, use, top)):
        return True
    if isinstance(use, FunctionNode):
        return beside(tree, use, top) is not None or tree.block(top) is tree.module.body
    return dominates(tree, top, use)


def guard(unit: Unit, site: Site, holder: ast.If, positive: bool) -> Condition:
    """Return what a guard of an initialize asks; `positive` where it stands in the body of it."""
    condition = asked_of_attribute(unit, site, holder.test)
    if condition is None:
        condition = unit.availability[site.module].reduce(holder.test)
    return condition if positive else negate(condition)


def chosen(unit: Unit, site: Site) -> list[Condition]:
    """Return what must hold for the arms of conditional expressions in which an initialize stands, outer first."""
    availability = unit.availability[site.module]
    found = []
    for choice, child in choices(site):
        if acts(choice.test):
            raise OutOfReach(
                "AMP901",
                *site.at,
                f"amp.initialize runs where `{ast.unparse(choice.test)}` says so, which may come out otherwise when it is "
                "asked again",
                "put what it gives into a variable above and test that, then run again",
            )
        if child is not choice.test:
            condition = availability.reduce(choice.test)
            found.append(condition if child is choice.body else negate(condition))
    return found[::-1]
