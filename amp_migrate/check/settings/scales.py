"""Whether the loss scale that `amp.initialize` was given is the one that GradScaler gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial

from amp_migrate.check.apex.assumed import Initialize, guards
from amp_migrate.check.apex.given import POSITIONS, stated
from amp_migrate.check.casts.conditions.runs import spelt, tests_around
from amp_migrate.check.events.claims import BOUNDS, STEPS, Claims
from amp_migrate.check.events.sides import Key, Side, differs, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.check.settings.late import late
from amp_migrate.facts.constants import filled, is_none, number
from amp_migrate.facts.paths import argument
from amp_migrate.facts.tree import Tree
from amp_migrate.flow.assumption import NOTHING
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place
from amp_migrate.training.contexts import is_off
from amp_migrate.training.named import sets_scale

_BOUNDS = frozenset({"min_loss_scale", "max_loss_scale"})
_WITHOUT_EFFECT = {"max_loss_scale": 2.0**24}
_OWN = frozenset({"backoff_factor", "growth_factor", "growth_interval", "init_scale"})
_INTERVAL, _SETS = "_scale_seq_len", "set_growth_interval"
_NEVER = 10**6  # turns after which a scale that must stay may grow, at the least


def scales(
    old: Side, new: Side, every: Sequence[Initialize], claims: Claims
) -> Iterator[tuple[Key, Difference]]:
    """Yield the settings of the loss scale that the new text does not have.

    A bound that the call names and does not write as a number may be left out, where the run says so.
    """
    given = _Given(new)
    for item in every:
        place = Place(item.function.module.path, item.call.lineno)
        kept_nowhere = claims.note(STEPS, place)
        reported = claims.note(BOUNDS, place)
        for name in _with_effect(old, item):
            read = stated(old.project, item.function.module, item.call, name)
            constant = partial(old.constant, item.function)
            values = [constant(value) or filled(value, constant) for value in read]
            direct = argument(item.call, name, POSITIONS[name])
            named = direct is not None and number(filled(direct, constant)) is None
            left_out = name in _BOUNDS and (kept_nowhere or (reported and named))
            pairs = zip(values, read, strict=True)
            if values and not left_out and not any(given.has(name, v, r) for v, r in pairs):
                value = values[0]
                text = (
                    f"{name}={ast.unparse(value)} of amp.initialize is not set in the GradScaler:"
                )
                yield differs(item.function, item.call, text, gone=True)
    yield from late(old, new, every)
    yield from _added(old, new, every)
    yield from _set(old, new, every)
    yield from _intervals(old, new)


def _with_effect(old: Side, item: Initialize) -> list[str]:
    """Return the settings that Apex goes by: a static loss scale has no bounds."""
    constant = partial(old.constant, item.function)
    scale = stated(old.project, item.function.module, item.call, "loss_scale")
    static = scale and all(number(constant(value) or value) is not None for value in scale)
    return [name for name in POSITIONS if not (static and name in _BOUNDS)]


def _set(old: Side, new: Side, every: Sequence[Initialize]) -> Iterator[tuple[Key, Difference]]:
    """Yield what sets the loss scale of a GradScaler to what Apex was neither given nor set to."""
    wanted = []
    if any(k.arg is None for item in every for k in item.call.keywords):
        return
    for item in every:
        constant = partial(old.constant, item.function)
        for value in (
            v
            for name in _with_effect(old, item)
            for v in stated(old.project, item.function.module, item.call, name)
        ):
            wanted += [
                v for v in (value, constant(value) or filled(value, constant)) if not is_none(v)
            ]
    known = {ast.unparse(call) for module, call in old.project.nodes(ast.Call)}
    by_hand = [value for m in old.project.modules.values() for value in _set_of_apex(m.tree)]
    for name in ("update", "load_state_dict"):
        for module, call in new.program.training.objects.method_calls.get(name, []):
            assert isinstance(call.func, ast.Attribute)
            scale = sets_scale(call)
            if scale is None or ast.unparse(call) in known:
                continue
            if new.program.training.objects.scaler(module, call.func.value) is None:
                continue
            function = new.project.function_of(module, call)
            if any(_equal(value, scale) for value in (*wanted, *by_hand)):
                continue
            text = f"`{ast.unparse(call)}` sets a loss scale that Apex did not have:"
            yield differs(function, call, text)


def _added(old: Side, new: Side, every: Sequence[Initialize]) -> Iterator[tuple[Key, Difference]]:
    """Yield the GradScalers with settings of their own, in functions whose `amp.initialize` has none.

    One that is given networks alone makes no GradScaler, where another of its function does.
    """
    training = {key(item.function) for item in every if item.trains}
    makes = [item for item in every if item.trains or key(item.function) not in training]
    plain = {key(item.function) for item in makes if _has_none(old, item)}
    set_up = [item for item in makes if not _has_none(old, item)]
    before = {ast.unparse(call) for _, call in old.program.training.objects.made_scalers}
    for module, call in new.program.training.objects.made_scalers:
        function = new.project.function_of(module, call)
        name = key(function)
        own = next((k for k in call.keywords if k.arg in _OWN), None)
        if own is None or name not in plain or ast.unparse(call) in before:
            continue
        own_place = _tests(function, call)
        at = (i for i in set_up if key(i.function) == name and _meet(i, own_place))
        if (item := next(at, None)) is not None:
            set_up.remove(item)  # it stands for an initialize beside those without settings
        elif not any(_counts_as(value, own.value) for value in _set_by_hand(old, name)):
            text = f"{own.arg}={ast.unparse(own.value)} of the GradScaler is not that of Apex:"
            yield differs(function, call, text)


def _tests(function: Function, call: ast.Call) -> dict[str, bool]:
    """Return the tests that a call stands under, with how they come out there."""
    return {ast.unparse(test): truth for test, truth in guards(function, call)}


def _meet(item: Initialize, tests: dict[str, bool]) -> bool:
    """Tell whether one run may come to an initialize, and to what stands under some tests."""
    own = _tests(item.function, item.call)
    return all(tests.get(test, truth) is truth for test, truth in own.items())


def _set_by_hand(old: Side, name: Key) -> list[ast.expr]:
    """Return what the file of a function assigns to attributes, as to those of Apex's own scalers."""
    trees = {function.module.tree: None for function in old.functions.get(name, ())}
    return [value for tree in trees for value in _set_in(tree)]


def _counts_as(value: ast.expr, other: ast.expr) -> bool:
    """Tell whether a GradScaler is given what Apex was, if as an int where that may be none."""
    text, known = ast.unparse(value), number(value)
    return ast.unparse(other) in (text, f"int({text})") or (
        known is not None and known == number(other)
    )


def _intervals(old: Side, new: Side) -> Iterator[tuple[Key, Difference]]:
    """Yield the intervals of growth that are no int, for which torch raises at an update, and those set later that Apex was not."""
    objects = new.program.training.objects
    known = {ast.unparse(call) for _, call in old.project.nodes(ast.Call)}
    asked = [
        node.value
        for _, node in old.project.nodes(ast.Assign)
        if any(isinstance(t, ast.Attribute) and t.attr == _INTERVAL for t in node.targets)
    ]
    later = [(m, c, a) for m, c in objects.method_calls.get(_SETS, []) for a in c.args[:1]]
    made = [
        (module, call, keyword.value)
        for module, call in objects.made_scalers
        for keyword in call.keywords
        if keyword.arg == "growth_interval"
    ]
    for module, call, value in (*made, *later):
        if ast.unparse(call) in known:
            continue
        function = new.project.function_of(module, call)
        if isinstance(value, ast.Constant) and isinstance(value.value, float):
            text = f"`{ast.unparse(call)}` counts up to a number that is no int:"
            yield differs(function, call, text)
        elif (module, call, value) in later and not any(_counts_as(v, value) for v in asked):
            yield differs(function, call, f"`{ast.unparse(call)}` is nothing that Apex was set to:")


def _set_in(tree: Tree) -> Iterator[ast.expr]:
    for node in tree.nodes(ast.Assign):
        if any(isinstance(target, ast.Attribute) for target in node.targets):
            yield node.value


def _set_of_apex(tree: Tree) -> Iterator[ast.expr]:
    """Yield what is assigned to the scale of a scaler of Apex, and to its bounds."""
    for node in tree.nodes(ast.Assign):
        names = [target.attr for target in node.targets if isinstance(target, ast.Attribute)]
        if any(name.endswith("loss_scale") for name in names):
            yield node.value


def _has_none(old: Side, item: Initialize) -> bool:
    stars = any(k.arg is None for k in item.call.keywords)
    return not stars and not any(
        stated(old.project, item.function.module, item.call, name) for name in POSITIONS
    )


class _Given:
    """What the GradScalers of the new text are made with and set to."""

    def __init__(self, side: Side) -> None:
        objects = side.program.training.objects
        made = (
            (side.project.function_of(module, call), call) for module, call in objects.made_scalers
        )
        self._made = [call for function, call in made if _may_run(function, call)]
        self._set: list[ast.expr] = []
        for name in ("update", "load_state_dict"):
            for module, call in objects.method_calls.get(name, []):
                assert isinstance(call.func, ast.Attribute)
                scale = sets_scale(call)
                if scale is not None and objects.scaler(module, call.func.value) is not None:
                    self._set.append(scale)

    def has(self, name: str, value: ast.expr, read: ast.expr | None = None) -> bool:
        """Tell whether some GradScaler has a setting, as its value or as the old text reads it."""
        if isinstance(value, ast.IfExp):
            return all(self._has_under(name, value, arm) for arm in (True, False))
        if isinstance(value, ast.Constant) and value.value in (None, "dynamic"):
            return True
        written = number(value)
        if written is not None and written == _WITHOUT_EFFECT.get(name):
            return True
        if not self._made or any(k.arg is None for call in self._made for k in call.keywords):
            return True
        if name != "loss_scale":
            held = any(self._is_static(call, value, value) for call in self._made)
            return held or any(_equal(value, part) for part in self._set)
        if written == 1.0 and any(is_off(call) for call in self._made):
            return True
        return any(self._is_static(call, value, read or value, kept=True) for call in self._made)

    def _has_under(self, name: str, choice: ast.IfExp, truth: bool) -> bool:
        """Tell whether some GradScaler has what a conditional expression gives where its test is true, or false."""
        value = choice.body if truth else choice.orelse
        if self.has(name, value):
            return True
        held = refine(NOTHING, choice.test, truth)
        if name != "loss_scale" or number(value) != 1.0 or held is None:
            return False
        return any(
            k.arg == "enabled" and evaluate(k.value, held) is False
            for call in self._made
            for k in call.keywords
        )

    def _is_static(
        self, made: ast.Call, value: ast.expr, read: ast.expr, kept: bool = False
    ) -> bool:
        """Tell whether a GradScaler begins at a scale, and stays there: one that is to be `kept`, or that is a number."""
        given = {k.arg: k.value for k in made.keywords}
        first, grows = given.get("init_scale"), given.get("growth_interval")
        turns = None if grows is None else number(grows)
        stays = turns is not None and turns >= _NEVER
        stays = stays or any(_equal(value, part) for part in self._set)
        if first is None or not (_equal(value, first) or _equal(read, first)):
            return False
        return stays or (number(value) is None and not kept)


def _may_run(function: Function, call: ast.Call) -> bool:
    """Tell whether the tests around a call let it run, as far as they are constants."""
    return not any(
        evaluate(spelt(function, test)) is False for test in tests_around(function, call)
    )


def _equal(value: ast.expr, other: ast.expr) -> bool:
    """Tell whether two expressions are the same number, or read the same."""
    one = number(value)
    if one is not None:
        return one == number(other)
    read = {
        ast.unparse(n)
        for n in ast.walk(value)
        if isinstance(n, ast.Name | ast.Attribute | ast.Subscript)
    }
    return bool(read & {ast.unparse(n) for n in ast.walk(other) if isinstance(n, ast.expr)})
