"""Puts the keywords of a call into a dictionary, or its arguments into a tuple."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import libcst as cst

from generated.refactor.code.blocks import parsed
from generated.refactor.code.expressions import simple, spots
from generated.refactor.code.names import code, fresh
from generated.refactor.code.writing import listed
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_STEMS = ("options", "settings", "kwargs", "config", "keywords")


def _keywords(project: Project, rng: Random) -> Project | None:
    """Draw a call whose keywords are plain values; those, or the last of them, go into a dictionary."""
    for spot in spots(project, rng, _has_keywords):
        call, module = spot.node, spot.place.module
        assert isinstance(call, cst.Call)
        at = next(k for k, arg in enumerate(call.args) if arg.keyword is not None)
        if rng.random() < 0.3:
            at = rng.randrange(at, len(call.args))
        moved = call.args[at:]
        if not all(simple(arg.value) for arg in moved) or not _calm(call.args[:at], moved):
            continue
        name = fresh(project, rng, _STEMS)
        pairs = [(code(arg.keyword), code(arg.value)) for arg in moved if arg.keyword]
        lines = parsed(_built(name, pairs, rng, len(spot.place.block.inside)), module)
        rest = [*call.args[:at], cst.Arg(cst.Name(name), star="**")]
        return project.changed(spot.place.path, spot.replaced(_with(call, rest), lines))
    return None


def _built(name: str, pairs: Sequence[tuple[str, str]], rng: Random, depth: int) -> str:
    """Return the statements that build a dictionary, in one of the ways that people use."""
    way = rng.randrange(5)
    entries = [f'"{k}": {v}' for k, v in pairs]
    if way == 0:
        return listed(f"{name} = dict(", [f"{k}={v}" for k, v in pairs], ")\n", depth)
    if way == 1:
        start = rng.choice(("{}", "dict()"))
        return f"{name} = {start}\n" + "".join(f'{name}["{k}"] = {v}\n' for k, v in pairs)
    if way == 2:
        cut = rng.randrange(len(pairs))
        later = [f"{k}={v}" for k, v in pairs[cut:]]
        head = listed(f"{name} = {{", entries[:cut], "}\n", depth)
        return head + listed(f"{name}.update(", later, ")\n", depth)
    if way == 3 and len(pairs) > 1:
        cut = rng.randrange(1, len(pairs))
        head = listed(f"{name} = {{", entries[:cut], "}\n", depth)
        return head + "".join(f'{name}["{k}"] = {v}\n' for k, v in pairs[cut:])
    return listed(f"{name} = {{", entries, "}\n", depth)


def _arguments(project: Project, rng: Random) -> Project | None:
    """Draw a call of two positional arguments or more, plain values; they go into a tuple or a list."""
    for spot in spots(project, rng, _has_positions):
        call, module = spot.node, spot.place.module
        assert isinstance(call, cst.Call)
        count = len([arg for arg in call.args if arg.keyword is None])
        if not all(simple(arg.value) for arg in call.args[:count]):
            continue
        name = fresh(project, rng, ("arguments", "inputs", "parts"))
        values = [code(arg.value) for arg in call.args[:count]]
        left, right = rng.choice(("()", "[]"))
        text = listed(f"{name} = {left}", values, f"{right}\n", len(spot.place.block.inside))
        rest = [cst.Arg(cst.Name(name), star="*"), *call.args[count:]]
        return project.changed(
            spot.place.path, spot.replaced(_with(call, rest), parsed(text, module))
        )
    return None


def _with(call: cst.Call, args: Sequence[cst.Arg]) -> cst.Call:
    """Return a call of other arguments, without a comma after the last one."""
    last = args[-1].with_changes(
        comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=call.args[-1].whitespace_after_arg
    )
    inner = [
        arg if arg.comma else arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) for arg in args
    ]
    return call.with_changes(args=[*inner[:-1], last])


def _calm(before: Sequence[cst.Arg], moved: Sequence[cst.Arg]) -> bool:
    """Tell whether the arguments that stay cannot change what the moved ones are."""
    constant = (cst.BaseNumber, cst.BaseString)
    plain = all(
        isinstance(arg.value, constant) or code(arg.value) in ("None", "True", "False")
        for arg in moved
    )
    return plain or all(simple(arg.value) for arg in before)


def _has_keywords(node: cst.BaseExpression) -> bool:
    if not isinstance(node, cst.Call) or any(arg.star for arg in node.args):
        return False
    return any(arg.keyword is not None for arg in node.args) and simple(node.func)


def _has_positions(node: cst.BaseExpression) -> bool:
    if (
        not isinstance(node, cst.Call)
        or any(arg.star for arg in node.args)
        or not simple(node.func)
    ):
        return False
    return len([arg for arg in node.args if arg.keyword is None]) > 1


REFACTORINGS = (
    Refactoring("keywords of a call become a dictionary", "functions", _keywords),
    Refactoring("arguments of a call become a tuple", "functions", _arguments),
)
