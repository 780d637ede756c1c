"""Whether a GradScaler keeps its scale in the runs in which Apex kept it, and changes it in those in which Apex did."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import TypeVar

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.given import POSITIONS, asked, stated
from amp_migrate.check.apex.installed import installed
from amp_migrate.check.casts.conditions.runs import flags_of, runs, spelt, tests_around
from amp_migrate.check.events.sides import Key, Side, differs, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.below import with_parts
from amp_migrate.facts.constants import filled, number
from amp_migrate.facts.paths import argument, tail
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.terms import term
from amp_migrate.project import Function
from amp_migrate.training.contexts import is_off
from amp_migrate.training.named import sets_scale

_SCALE = "loss_scale"
_DYNAMIC, _STATIC = "dynamic", "static"
_NEVER = 10**6  # turns after which a scale that must stay may grow, at the least
_MOST = 6  # flags of one choice
_CASTING = ("O1", "O2")
_OTHER = "`GradScaler` has a scale of the other kind than Apex, static or dynamic:"
_NUMBER = "`GradScaler` keeps another scale than Apex did:"

_T = TypeVar("_T")
_Kind = str | float
"""That a scale changes, or stays as it is at some number or another."""


class _Unknown(Exception):
    """Nothing tells which kind a scale is of."""


def kinds(old: Side, new: Side, every: Sequence[Initialize]) -> Iterator[tuple[Key, Difference]]:
    """Yield the GradScalers of functions that initialized Apex whose scale is of another kind than that was in some run."""
    if any(_sets(new)):
        return
    for name in dict.fromkeys(key(item.function) for item in every if item.trains):
        items = [item for item in every if item.trains and key(item.function) == name]
        made = [(f, call) for f, call in _made(new) if key(f) == name]
        if made and not any(key(f) == name for f, _ in _made(old)):
            yield from _differing(old, new, items, made)


def _differing(
    old: Side,
    new: Side,
    items: Sequence[Initialize],
    made: Sequence[tuple[Function, ast.Call]],
) -> Iterator[tuple[Key, Difference]]:
    before = items[0].function
    had = [
        (_condition(old, item.function, item.call), scale)
        for item in items
        if (scale := _scale(old, item)) is not None
    ]
    if any(_is_bounded(old, item) for item in items):
        return
    unpacked = any(k.arg is None for item in items for k in item.call.keywords)
    if len(had) < len(items) or (unpacked and not _chooses(made)):
        return
    has = [(_condition(new, function, call), call) for function, call in made]
    tests = [test for test, _ in (*had, *has)] + [t for _, s in had for t in _chosen_by(s)]
    flags = {ast.dump(flag): flag for test in tests for flag in flags_of(test)}
    if len(flags) > _MOST:
        return
    asks = {ast.dump(flag) for test, _ in has for flag in flags_of(test) if _asks_kind(flag)}
    for known in runs(installed(old.project, before), list(flags.values())):
        try:
            was = {_kind(scale, known, asks) for scale in _running(had, known)}
            now = {_of_made(call) for call in _running(has, known)}
        except _Unknown:
            continue
        if was and now and (what := _apart(was, now)) is not None:
            function, call = made[0]
            yield differs(function, call, what)
            return


def _is_bounded(old: Side, item: Initialize) -> bool:
    """Tell whether both bounds of a scale are given: between two that are one number it stays."""
    module, call = item.function.module, item.call
    return all(stated(old.project, module, call, f"{end}_{_SCALE}") for end in ("min", "max"))


def _apart(was: set[_Kind], now: set[_Kind]) -> str | None:
    """Return what is said of scales of two texts in one run that are not the same; None where they may be."""
    statics = [{kind for kind in side if kind != _DYNAMIC} for side in (was, now)]
    if (_DYNAMIC in was) is not (_DYNAMIC in now) or bool(statics[0]) is not bool(statics[1]):
        return _OTHER
    told = all(isinstance(kind, float) for side in statics for kind in side)
    return _NUMBER if told and statics[0] != statics[1] else None


def _made(side: Side) -> Iterator[tuple[Function, ast.Call]]:
    for module, call in side.program.training.objects.made_scalers:
        if not is_off(call):
            yield side.project.function_of(module, call), call


def _sets(side: Side) -> Iterator[ast.Call]:
    """Yield what sets the scale of a GradScaler that is made."""
    calls = side.program.training.objects.method_calls
    for name in ("update", "load_state_dict", "set_growth_interval"):
        for _, call in calls.get(name, []):
            if name == "set_growth_interval" or sets_scale(call) is not None:
                yield call


def _condition(side: Side, function: Function, call: ast.Call) -> ast.expr:
    """Return all that must hold for a call to run, a comparison with a choice as a choice of comparisons."""
    constant = partial(side.constant, function)
    tests = [spelt(function, filled(test, constant)) for test in tests_around(function, call)]
    return _told_apart(ast.BoolOp(ast.And(), [ast.Constant(True), *tests]))


def _told_apart(node: ast.expr) -> ast.expr:
    """Return a condition in which a choice that is compared is a choice of two comparisons."""
    chosen: dict[ast.AST, ast.expr] = {}
    for part in ast.walk(node):
        left = _chosen(part.left) if isinstance(part, ast.Compare) else None
        if isinstance(part, ast.Compare) and isinstance(left, ast.IfExp):
            arms = (ast.Compare(a, part.ops, part.comparators) for a in (left.body, left.orelse))
            chosen[part] = ast.IfExp(left.test, *map(_told_apart, arms))
    return with_parts(node, chosen) if chosen else node


def _scale(old: Side, item: Initialize) -> ast.expr | None:
    """Return the loss scale that Apex was given, with what variables hold; None where that is not told, or it had none."""
    function, call = item.function, item.call
    value = argument(call, _SCALE, POSITIONS[_SCALE])
    if value is None and any(k.arg is None for k in call.keywords):
        return asked(old.project, function.module, call, _SCALE)
    if value is None:
        level = item.level
        changes = not isinstance(level, ast.Constant) or level.value in _CASTING
        return ast.Constant(_DYNAMIC) if changes else None
    constant = partial(old.constant, function)
    return _chosen(spelt(function, constant(value) or filled(value, constant)))


def _chosen(scale: ast.expr) -> ast.expr:
    """Return a scale as a choice by a test, where it is one: ``args.scale or "dynamic"``."""
    if isinstance(scale, ast.IfExp):
        return ast.IfExp(scale.test, _chosen(scale.body), _chosen(scale.orelse))
    if isinstance(scale, ast.BoolOp) and isinstance(scale.op, ast.Or):
        *first, last = scale.values
        found = _chosen(last)
        for value in reversed(first):
            found = ast.IfExp(value, _chosen(value), found)
        return found
    return scale


def _chosen_by(scale: ast.expr) -> Iterator[ast.expr]:
    """Yield the tests by which a scale is chosen."""
    if isinstance(scale, ast.IfExp):
        yield scale.test
        yield from _chosen_by(scale.body)
        yield from _chosen_by(scale.orelse)


def _is_dynamic(scale: ast.expr) -> ast.expr:
    words = ast.Tuple([ast.Constant(None), ast.Constant(_DYNAMIC)], ast.Load())
    return ast.Compare(scale, [ast.In()], [words])


def _asks_kind(flag: ast.expr) -> bool:
    """Tell whether a flag asks something whether it is None or the word that a scale which changes goes by."""
    parts = flag.comparators if isinstance(flag, ast.Compare) else ()
    return any(
        isinstance(part, ast.Constant) and part.value in (None, _DYNAMIC)
        for comparator in parts
        for part in ast.walk(comparator)
    )


def _kind(scale: ast.expr, known: Assumption, asks: Collection[str]) -> _Kind:
    """Return which kind of scale Apex had in a run; what lasts and nothing `asks` whether it is dynamic is a number."""
    if isinstance(scale, ast.Constant) and scale.value in (None, _DYNAMIC):
        return _DYNAMIC
    written = number(scale)
    if written is not None:
        if written == 1.0:
            raise _Unknown  # the same as none
        return written
    if isinstance(scale, ast.IfExp):
        truth = evaluate(scale.test, known)
        if truth is None:
            raise _Unknown
        return _kind(scale.body if truth else scale.orelse, known, asks)
    if isinstance(scale, ast.Call) and tail(scale) in ("float", "int"):
        return _STATIC
    test = _is_dynamic(scale)
    dynamic = evaluate(test, known)
    if dynamic is None and (asks or term(scale) is None):
        raise _Unknown
    return _DYNAMIC if dynamic else _STATIC


def _of_made(call: ast.Call) -> _Kind:
    """Return which kind of scale a GradScaler is made with."""
    given = {k.arg: k.value for k in call.keywords}
    first, grows = given.get("init_scale"), given.get("growth_interval")
    turns = None if grows is None else number(grows)
    if None in given or call.args[1:] or (grows is not None and turns is None):
        raise _Unknown
    stays = turns is not None and turns >= _NEVER
    if first is None and not stays:
        return _DYNAMIC
    if first is None or not stays:
        raise _Unknown
    written = number(first)
    return _STATIC if written is None else written


def _chooses(made: Sequence[tuple[Function, ast.Call]]) -> bool:
    """Tell whether GradScalers are made with scales of more than one kind."""
    return len({"init_scale" in {k.arg for k in call.keywords} for _, call in made}) > 1


def _running(held: Sequence[tuple[ast.expr, _T]], known: Assumption) -> list[_T]:
    """Return what is there in a run whose conditions are known."""
    truths = [evaluate(condition, known) for condition, _ in held]
    if None in truths:
        raise _Unknown
    return [one for (_, one), truth in zip(held, truths, strict=True) if truth]
