"""Whether a GradScaler is on for all parts of a condition that Apex was on for, as they are spelt in one function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.installed import installed
from amp_migrate.check.casts.conditions.runs import (
    any_of,
    flags_of,
    may_leave,
    runs,
    spelt,
    tests_around,
)
from amp_migrate.check.events.sides import Key, Side, differs, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.below import every as parts_of
from amp_migrate.facts.paths import argument, variables
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.project import Function, Project
from amp_migrate.project.reach import where_set
from amp_migrate.training.contexts import is_off, scaling_calls

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
    if any(may_leave(item.function, item.call) for item in every):
        return
    apex = any_of(_asked(before, item.call, _switches(item)) for item in every)
    begun = any_of(_asked(before, item.call, ()) for item in every)
    native = any_of(_asked(after[0], call, [argument(call, "enabled")]) for call in made)
    flags = {ast.dump(atom): atom for test in (apex, scales, native) for atom in flags_of(test)}
    if len(flags) > _MOST or not all(_is_steady(old.project, before, f) for f in flags.values()):
        return
    for known in runs(installed(old.project, before), list(flags.values())):
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
    tests = [*tests_around(function, call), *(value for value in given if value is not None)]
    return spelt(function, ast.BoolOp(ast.And(), [ast.Constant(True), *tests]))


def _scaled(project: Project, home: Function) -> ast.expr | None:
    """Return where Apex scales a loss, by the names of a function; None where not all of it has such."""
    found: list[ast.expr] = []
    for function in project.functions():
        for call in function.calls:
            if call in scaling_calls(project) and project.apex(function.module, call.func):
                asked = _asked(function, call, ())
                if function is not home and not _means_same(project, function, asked, home):
                    return None
                found.append(asked)
    return any_of(found) if found else None


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
