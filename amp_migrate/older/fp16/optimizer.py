"""`FP16_Optimizer` of `apex.fp16_utils`, written as `amp.initialize` with O2 and `amp.scale_loss`."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import is_false, is_none, is_true, number
from amp_migrate.facts.paths import path, same
from amp_migrate.older.found import Found
from amp_migrate.older.fp16.calls import write_calls
from amp_migrate.older.fp16.halves import write_halves
from amp_migrate.older.fp16.refused import refuse_other_uses
from amp_migrate.older.fp16.states import write_states
from amp_migrate.older.fp16.training import Fp16
from amp_migrate.older.fused.adam import write_fused
from amp_migrate.older.sheet import STATE, Sheet, Sheets
from amp_migrate.older.wraps import Wrap, initialized, named, networks_of
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Module
from amp_migrate.project.programs import beside

_PARAMETERS = (
    "init_optimizer", "static_loss_scale", "dynamic_loss_scale", "dynamic_loss_args", "verbose",
)  # fmt: skip
_SETTINGS = {
    "init_scale": "_loss_scale",
    "scale_window": "_scale_seq_len",
    "min_loss_scale": "_min_loss_scale",
    "max_loss_scale": "_max_loss_scale",
}
_DEFAULTS = {"init_scale": 2.0**16, "scale_window": 2000.0, "scale_factor": 2.0}
"""What a dynamic loss scaler does where it is told nothing."""


class Training(Fp16):
    """A training with FP16_Optimizer."""

    def describe(self, found: Found) -> dict[Module, Sheet]:
        """Return its files with it written as today's amp. Raises `Unwritable`."""
        return _described(self, found)


def trainings(found: Found) -> list[Training]:
    """Return the trainings with FP16_Optimizer, those that share an optimizer or a network as one."""
    result: list[Training] = []
    for module, node, interface in found.wrappers():
        call = module.tree.call_of(node)
        if call is None:
            continue
        given = dict(zip(_PARAMETERS, call.args, strict=False))
        given |= {k.arg: k.value for k in call.keywords if k.arg is not None}
        wrap = Wrap(module, call, module.tree.statement(call), given)
        own = Training([wrap], found.group(module, call), interface)
        if "init_optimizer" in given:
            trains = {g for o in found.made_with(module, wrap.inner) for g in o.trains}
            own.networks = found.trained(module, wrap.inner) | trains
        joined = [
            t
            for t in result
            if t.interface is interface and (_share(t, own, found) or _meet(t, own, found))
        ]
        for other in joined:
            result.remove(other)
            own.wraps = [*other.wraps, *own.wraps]
            own.groups |= other.groups
            own.networks |= other.networks
        result.append(own)
    return result


def _share(one: Fp16, other: Fp16, found: Found) -> bool:
    """Tell whether a program may run both on one optimizer or network."""
    files = beside(found.project, *(wrap.module.path for wrap in one.wraps))
    together = any(wrap.module.path in files for wrap in other.wraps)
    return together and bool((one.groups | one.networks) & (other.groups | other.networks))


def _meet(one: Fp16, other: Fp16, found: Found) -> bool:
    """Tell whether one backward pass is that of either, as where programs share what trains."""
    held = (
        found.groups(m, c.func.value)
        for m, c in found.method_calls("backward")
        if isinstance(c.func, ast.Attribute)
    )
    return any(groups & one.groups and groups & other.groups for groups in held)


def _described(training: Fp16, found: Found) -> dict[Module, Sheet]:
    """Return the files of a training with it written as today's amp. Raises `Unwritable`."""
    training.sheets = Sheets()
    refuse_other_uses(training, found)
    first = training.wraps[0]
    write_halves(
        found, training.networks, training.sheets, first, "the network that this optimizer trains"
    )
    if training.interface.fused:
        write_fused(training, found)
    write_calls(training, found)
    write_states(training, found, any(_moves(wrap) for wrap in training.wraps))
    _initialize(training, found)
    return training.sheets


def _initialize(training: Fp16, found: Found) -> None:
    done: set[ast.stmt] = set()
    for wrap in training.wraps:
        if wrap.statement in done:
            continue
        sheet = training.sheets[wrap.module]
        given = named(sheet, wrap.call, _PARAMETERS)
        fused = training.interface.fused
        settings = _settings(sheet, wrap, given, fused)
        scale = _loss_scale(sheet, given)
        node: ast.stmt = wrap.statement
        twin = _twin(training, wrap)
        if twin is not None:
            other, choice = twin
            others = named(sheet, other.call, _PARAMETERS)
            more = _loss_scale(sheet, others)
            seconds = _settings(sheet, other, others, fused)
            if not fused and (settings or seconds):
                raise _unread(wrap)
            settings = settings or seconds
            scale = f"{scale} if {sheet.text(choice.test)} else {more}"
            node = choice
            done.add(other.statement)
        networks = networks_of(training.networks, found, wrap)
        arguments = f'opt_level="O2", loss_scale={scale}'
        sheet.put(node, initialized(sheet, wrap, networks, arguments, settings))


def _moves(wrap: Wrap) -> bool:
    """Tell whether the loss scale of an FP16_Optimizer may be dynamic."""
    dynamic = wrap.given.get("dynamic_loss_scale")
    return dynamic is not None and not is_false(dynamic)


def _loss_scale(sheet: Sheet, given: dict[str, ast.expr]) -> str:
    static = given.get("static_loss_scale")
    dynamic = given.get("dynamic_loss_scale")
    number = sheet.text(static) if static is not None else "1.0"
    if dynamic is None or is_false(dynamic):
        return number
    if is_true(dynamic):
        return '"dynamic"'
    return f'"dynamic" if {sheet.text(dynamic)} else {number}'


def _twin(training: Fp16, wrap: Wrap) -> tuple[Wrap, ast.If] | None:
    """Return the call in the other branch of a test that only chooses the loss scale."""
    tree = wrap.module.tree
    choice = tree.parent(wrap.statement)
    if not isinstance(choice, ast.If) or choice.body != [wrap.statement] or len(choice.orelse) != 1:
        return None
    for other in training.wraps:
        if other.statement is choice.orelse[0] and other.module is wrap.module:
            assigned = isinstance(other.statement, ast.Assign) and isinstance(
                wrap.statement, ast.Assign
            )
            if assigned and same(other.inner, wrap.inner) and _targets(wrap) == _targets(other):
                return None if tree.is_elif(choice) else (other, choice)
    return None


def _targets(wrap: Wrap) -> list[str | None]:
    return [path(t) for t in getattr(wrap.statement, "targets", [])]


def _settings(sheet: Sheet, wrap: Wrap, given: dict[str, ast.expr], fused: bool) -> str:
    """Return what sets the loss scaler as `dynamic_loss_args` says, or as the `fused` class does without any."""
    node = given.get("dynamic_loss_args")
    if node is None or is_none(node):
        return f"; {STATE}._scale_seq_len = 1000" if fused and _moves(wrap) else ""
    if fused:
        raise Unwritable(
            wrap.module,
            node,
            "this FP16_Optimizer raises where it is given dynamic_loss_args",
            "leave them out: a GradScaler is made with init_scale=2.0**16 and growth_interval=1000 then",
        )
    entries: dict[str, ast.expr] = {}
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            entries[str(key.value) if isinstance(key, ast.Constant) else ""] = value
    elif isinstance(node, ast.Call) and path(node.func) == "dict" and not node.args:
        entries = {k.arg or "": k.value for k in node.keywords}
    known = {*_SETTINGS, "scale_factor"}
    if not entries or not set(entries) <= known:
        raise _unread(wrap)
    entries = {k: v for k, v in entries.items() if number(v) != _DEFAULTS.get(k)}
    only_dynamic = entries.keys() - {"scale_window"}  # a static loss scale counts no steps
    if only_dynamic and not is_true(given.get("dynamic_loss_scale")):
        raise _unread(wrap)
    return "".join(
        f"; {STATE}.{_SETTINGS[key]} = {sheet.text(value)}"
        for key, value in entries.items()
        if key in _SETTINGS
    )


def _unread(wrap: Wrap) -> Unwritable:
    return Unwritable(
        wrap.module,
        wrap.given.get("dynamic_loss_args", wrap.call),
        "what dynamic_loss_args hold, or whether the loss scale is dynamic, cannot be read here",
        "write dynamic_loss_scale=True and a dictionary with init_scale and scale_window into the call, then run again",
    )
