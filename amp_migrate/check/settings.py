"""Whether the loss scale that `amp.initialize` was given is the one that GradScaler gets."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator, Sequence

from amp_migrate.check.casts.assumed import Initialize, argument
from amp_migrate.check.events.claims import BOUNDS, DIFFERING_BOUNDS, Claims
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.facts.paths import tail
from amp_migrate.flow.assumption import NOTHING
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.protocol.faults import Place
from amp_migrate.training.contexts import is_off
from amp_migrate.training.named import sets_scale

_POSITIONS = {"loss_scale": 8, "min_loss_scale": 12, "max_loss_scale": 13}
_BOUNDS = frozenset({"min_loss_scale", "max_loss_scale"})
_WITHOUT_EFFECT = {"max_loss_scale": 2.0**24}
_OWN = frozenset({"backoff_factor", "growth_factor", "growth_interval", "init_scale"})
_NEVER = 10**6  # turns after which a scale that must stay may grow, at the least
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def scales(
    old: Side, new: Side, every: Sequence[Initialize], claims: Claims
) -> Iterator[tuple[Key, Difference]]:
    """Yield the settings of the loss scale that the new text does not have.

    A bound that the call names and does not write as a number may be left out, where the run says so.
    """
    given = _Given(new)
    for item in every:
        place = Place(item.function.module.path, item.call.lineno)
        kept_nowhere = claims.note(DIFFERING_BOUNDS, place)
        reported = claims.note(BOUNDS, place)
        for name in _POSITIONS:
            values = [old.constant(item.function, value) or value for value in stated(item, name)]
            direct = argument(item.call, name, _POSITIONS[name])
            named = direct is not None and folded(direct) is None
            left_out = name in _BOUNDS and (kept_nowhere or (reported and named))
            if values and not left_out and not any(given.has(name, v) for v in values):
                value = values[0]
                text = (
                    f"{name}={ast.unparse(value)} of amp.initialize is not set in the GradScaler:"
                )
                yield key(item.function), Difference((Step(Label(text), place, None),))
    yield from _added(old, new, every)


def _added(old: Side, new: Side, every: Sequence[Initialize]) -> Iterator[tuple[Key, Difference]]:
    """Yield the GradScalers with settings of their own, in functions whose `amp.initialize` has none."""
    plain = {key(item.function) for item in every if _has_none(item)}
    before = {ast.unparse(call) for _, call in old.program.training.objects.made_scalers}
    for module, call in new.program.training.objects.made_scalers:
        name = key(new.project.function_of(module, call))
        own = next((k for k in call.keywords if k.arg in _OWN), None)
        if own is None or name not in plain or ast.unparse(call) in before:
            continue
        if ast.unparse(own.value) not in _set_by_hand(old, name):
            text = f"{own.arg}={ast.unparse(own.value)} of the GradScaler is not that of Apex:"
            place = Place(module.path, call.lineno)
            yield name, Difference((Step(Label(text), None, place),))


def _set_by_hand(old: Side, name: Key) -> set[str]:
    """Return what the file of a function assigns to attributes, as to those of Apex's own scalers."""
    trees = {function.module.tree for function in old.functions.get(name, ())}
    return {
        ast.unparse(node.value)
        for tree in trees
        for node in tree.nodes(ast.Assign)
        if any(isinstance(target, ast.Attribute) for target in node.targets)
    }


def _has_none(item: Initialize) -> bool:
    stars = any(k.arg is None for k in item.call.keywords)
    return not stars and not any(stated(item, name) for name in _POSITIONS)


def stated(item: Initialize, name: str) -> list[ast.expr]:
    """Return what an argument of `amp.initialize` may be, as far as dictionaries that hold it can be read."""
    direct = argument(item.call, name, _POSITIONS[name])
    if direct is not None:
        return [direct]
    options = [k.value for k in item.call.keywords if k.arg is None]
    found = [value for node in options for value in _held(item, node, name, ())]
    read = [ast.Subscript(node, ast.Constant(name), ast.Load()) for node in options]
    return [*found, *read] if found else []


def _held(item: Initialize, node: ast.expr, name: str, seen: tuple[str, ...]) -> Iterator[ast.expr]:
    """Yield what a dictionary may hold under a name."""
    module = item.function.module
    if isinstance(node, ast.Dict):
        for entry, value in zip(node.keys, node.values, strict=True):
            if entry is None:
                yield from _held(item, value, name, seen)
            elif isinstance(entry, ast.Constant) and entry.value == name:
                yield value
    elif isinstance(node, ast.Call) and tail(node) == "dict":
        yield from (k.value for k in node.keywords if k.arg == name)
    elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        text = ast.unparse(node)
        if text in seen:
            return
        for assign in module.tree.nodes(ast.Assign):
            for target in assign.targets:
                if ast.unparse(target) == text:
                    yield from _held(item, assign.value, name, (*seen, text))
                elif isinstance(target, ast.Subscript) and ast.unparse(target.value) == text:
                    if isinstance(target.slice, ast.Constant) and target.slice.value == name:
                        yield assign.value
        for call in module.tree.nodes(ast.Call):
            if isinstance(call.func, ast.Attribute) and ast.unparse(call.func) == f"{text}.update":
                yield from (k.value for k in call.keywords if k.arg == name)
                for given in call.args:
                    yield from _held(item, given, name, (*seen, text))


class _Given:
    """What the GradScalers of the new text are made with and set to."""

    def __init__(self, side: Side) -> None:
        objects = side.program.training.objects
        self._made = [call for _, call in objects.made_scalers]
        self._set: list[ast.expr] = []
        for name in ("update", "load_state_dict"):
            for module, call in objects.method_calls.get(name, []):
                assert isinstance(call.func, ast.Attribute)
                scale = sets_scale(call)
                if scale is not None and objects.scaler(module, call.func.value) is not None:
                    self._set.append(scale)

    def has(self, name: str, value: ast.expr) -> bool:
        """Tell whether some GradScaler has a setting."""
        if isinstance(value, ast.IfExp):
            return all(self._has_under(name, value, arm) for arm in (True, False))
        if isinstance(value, ast.Constant) and value.value in (None, "dynamic"):
            return True
        number = folded(value)
        if number is not None and number == _WITHOUT_EFFECT.get(name):
            return True
        if not self._made or any(k.arg is None for call in self._made for k in call.keywords):
            return True
        if name != "loss_scale":
            return any(_equal(value, part) for part in self._set)
        if number == 1.0 and any(is_off(call) for call in self._made):
            return True
        return any(self._is_static(call, value) for call in self._made)

    def _has_under(self, name: str, choice: ast.IfExp, truth: bool) -> bool:
        """Tell whether some GradScaler has what a conditional expression gives where its test is true, or false."""
        value = choice.body if truth else choice.orelse
        if self.has(name, value):
            return True
        held = refine(NOTHING, choice.test, truth)
        if name != "loss_scale" or folded(value) != 1.0 or held is None:
            return False
        return any(
            k.arg == "enabled" and evaluate(k.value, held) is False
            for call in self._made
            for k in call.keywords
        )

    def _is_static(self, made: ast.Call, value: ast.expr) -> bool:
        given = {k.arg: k.value for k in made.keywords}
        first, grows = given.get("init_scale"), given.get("growth_interval")
        turns = None if grows is None else folded(grows)
        stays = turns is not None and turns >= _NEVER
        stays = stays or any(_equal(value, part) for part in self._set)
        if first is None or not _equal(value, first):
            return False
        return stays or folded(value) is None


def _equal(value: ast.expr, other: ast.expr) -> bool:
    """Tell whether two expressions are the same number, or read the same."""
    one, number = folded(value), folded(other)
    if one is not None:
        return one == number
    read = {
        ast.unparse(n)
        for n in ast.walk(value)
        if isinstance(n, ast.Name | ast.Attribute | ast.Subscript)
    }
    return bool(read & {ast.unparse(n) for n in ast.walk(other) if isinstance(n, ast.expr)})


def folded(node: ast.expr) -> float | None:
    """Return the number that an expression of numbers is; None for any other one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return float(node.value)
        except ValueError:
            return None
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = folded(node.left), folded(node.right)
        if left is not None and right is not None:
            try:
                return float(_OPERATORS[type(node.op)](left, right))
            except (ArithmeticError, ValueError):
                return None
    if isinstance(node, ast.Call) and tail(node) in ("float", "int") and len(node.args) == 1:
        return folded(node.args[0])
    return None
