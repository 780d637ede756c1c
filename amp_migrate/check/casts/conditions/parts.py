"""Whether a GradScaler is on for all parts of a condition that Apex was on for, as they are spelt in one function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from amp_migrate.check.apex.assumed import Initialize, guards
from amp_migrate.check.apex.installed import installed
from amp_migrate.check.events.sides import Key, Side, differs, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.below import atoms
from amp_migrate.facts.below import every as parts_of
from amp_migrate.facts.paths import argument, tail, variables
from amp_migrate.facts.scopes import assigned
from amp_migrate.facts.variables import put_in
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.project import Function, Project
from amp_migrate.project.order import levels
from amp_migrate.project.reach import where_set
from amp_migrate.training.contexts import is_off

_ENABLED = 2
_MOST = 5  # flags of one condition
_ON, _OFF = "`GradScaler` is on, where Apex was off:", "`GradScaler` is off, where Apex was on:"


def unequal(old: Side, new: Side, every: Sequence[Initialize]) -> Iterator[tuple[Key, Difference]]:
    """Yield the GradScalers that some flags switch otherwise than Apex, which one function asks for and nothing sets anew.

    Where Apex scaled losses that it was not initialized for, or left them alone, nothing is said.
    """
    functions = {key(item.function) for item in every if item.trains}
    if len(functions) != 1 or any(not item.trains or item.scaled for item in every):
        return
    name = functions.pop()
    before, after = every[0].function, list(new.functions.get(name, ()))[:1]
    scales = _scaled(old.project, before)
    made = [call for f in after for call in _made(new, f)]
    if scales is None or not made or list(_made(old, before)):
        return
    if any(_may_leave(item.function, item.call) for item in every):
        return
    apex = _any(_asked(before, item.call, _switches(item)) for item in every)
    begun = _any(_asked(before, item.call, ()) for item in every)
    native = _any(_asked(after[0], call, [argument(call, "enabled")]) for call in made)
    flags = {ast.dump(atom): atom for test in (apex, scales, native) for atom in _atoms(test)}
    if len(flags) > _MOST or not all(_is_steady(old.project, before, f) for f in flags.values()):
        return
    for known in _runs(installed(old.project, before), list(flags.values())):
        was, scaled, now = (evaluate(test, known) for test in (apex, scales, native))
        valid = was is scaled or (was is False and evaluate(begun, known) is True)
        if was is not None and valid and now is (not was):
            yield differs(after[0], made[0], _ON if now else _OFF)
            return


def _made(side: Side, function: Function) -> Iterator[ast.Call]:
    for module, call in side.program.training.objects.made_scalers:
        if side.project.function_of(module, call) is function and not is_off(call):
            yield call


def _switches(item: Initialize) -> list[ast.expr | None]:
    """Return what an initialize itself is given that decides whether it does anything."""
    level = item.level
    asked = None
    if level is not None and not isinstance(level, ast.Constant):
        asked = ast.Compare(level, [ast.NotEq()], [ast.Constant("O0")])
    return [argument(item.call, "enabled", _ENABLED), asked]


def _asked(function: Function, call: ast.Call, given: Iterable[ast.expr | None]) -> ast.expr:
    """Return all that must hold for a call to run and to switch something on, with the values of variables for them."""
    tests = [*_tests(function, call), *(value for value in given if value is not None)]
    return _spelt(function, ast.BoolOp(ast.And(), [ast.Constant(True), *tests]))


def _tests(function: Function, call: ast.Call) -> Iterator[ast.expr]:
    for test, truth in guards(function, call):
        yield test if truth else ast.UnaryOp(ast.Not(), test)


def _any(conditions: Iterable[ast.expr]) -> ast.expr:
    return ast.BoolOp(ast.Or(), [ast.Constant(False), *conditions])


def _spelt(function: Function, node: ast.expr) -> ast.expr:
    """Return a condition with what its variables are bound to, where that is once and no call."""
    scopes, tree = function.module.scopes, function.module.tree
    values: dict[str, ast.expr] = {}
    for name in variables(node):
        bound = scopes.bindings(function.scope, name)
        value = assigned(tree, bound[0]) if len(bound) == 1 else None
        if value is not None and not any(isinstance(n, ast.Call) for n in ast.walk(value)):
            values[name] = value
    return put_in(node, values) if values else node


def _scaled(project: Project, home: Function) -> ast.expr | None:
    """Return where Apex scales a loss, by the names of a function; None where not all of it has such."""
    found: list[ast.expr] = []
    for function in project.functions():
        for call in function.calls:
            if tail(call) == "scale_loss" and project.apex(function.module, call.func):
                asked = _asked(function, call, ())
                if function is not home and not _means_same(project, function, asked, home):
                    return None
                found.append(asked)
    return _any(found) if found else None


def _means_same(project: Project, function: Function, asked: ast.expr, home: Function) -> bool:
    """Tell whether the variables of a condition are those of another function, which alone hands them on."""
    for name in variables(asked):
        if name in function.receivers and name in home.receivers and function.cls is home.cls:
            continue
        bound = function.module.scopes.bindings(function.scope, name)
        given = project.received(function, name)
        if name not in function.parameters.names or len(bound) != 1 or not given:
            return False
        for _, holder, node in given:
            if holder is not home or not isinstance(node, ast.Name) or node.id != name:
                return False
    return True


def _may_leave(function: Function, call: ast.Call) -> bool:
    """Tell whether a test in front of a call may leave its function or loop."""
    tree = function.module.tree
    for level in levels(tree, call):
        block = tree.block(level)
        for statement in block[: block.index(level)]:
            if isinstance(statement, ast.If) and any(
                isinstance(n, ast.Return | ast.Continue | ast.Break | ast.Raise)
                for n in ast.walk(statement)
            ):
                return True
    return False


def _atoms(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the flags that a condition is made of."""
    for part in atoms(node):
        if isinstance(part, ast.IfExp):
            for side in (part.test, part.body, part.orelse):
                yield from _atoms(side)
        elif not isinstance(part, ast.Constant):
            yield part


def _is_steady(project: Project, function: Function, flag: ast.expr) -> bool:
    """Tell whether a flag is a variable, or an attribute that nothing but a constructor sets, or one compared with a constant.

    What is imported, or decided where something is, as whether Apex is there, is none.
    """
    if isinstance(flag, ast.Compare) and all(isinstance(c, ast.Constant) for c in flag.comparators):
        return _is_steady(project, function, flag.left)
    if not isinstance(flag, ast.Name | ast.Attribute):
        return False
    if any(f.is_property and f.name == getattr(flag, "attr", "") for f in project.functions()):
        return False
    for part in parts_of(flag):
        if isinstance(part, ast.Attribute):
            sets = where_set(project, part.attr)
            if len(sets) > 1 or any(project.function_of(m, n).name != "__init__" for m, n in sets):
                return False
        elif isinstance(part, ast.Name):
            scopes = function.module.scopes
            owner = scopes.find(function.scope, part.id)
            bound = scopes.bindings(owner, part.id) if owner is not None else []
            if len(bound) != 1 or isinstance(bound[0], ast.alias):
                return False
        elif not isinstance(part, ast.expr_context):
            return False
    return True


def _runs(known: Assumption, flags: Sequence[ast.expr]) -> Iterator[Assumption]:
    """Yield what may be known of some flags, for each way of them to come out."""
    for truths in product((True, False), repeat=len(flags)):
        held: Assumption | None = known
        for flag, truth in zip(flags, truths, strict=True):
            if held is not None and evaluate(flag, held) is not (not truth):
                held = refine(held, flag, truth)
            else:
                held = None
        if held is not None:
            yield held
