"""Binds the first arguments of a call, and some of its keywords, with `functools.partial`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from random import Random

import libcst as cst

from generated.refactor.code.blocks import blocks, parsed
from generated.refactor.code.expressions import Spot, simple, spots
from generated.refactor.code.names import bound, code, fresh, read, tree
from generated.refactor.code.scopes import before
from generated.refactor.code.writing import imported, listed
from generated.refactor.functions.expressions import hoisted, inputs_of, local
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_STEMS = ("apply_part", "bound_call", "prepared", "run_with", "do_part")
_STYLES = (("import functools", "functools.partial"), ("from functools import partial", "partial"))


def _apply(project: Project, rng: Random) -> Project | None:
    """Draw a call; the partial stands right above it, or above the loops if they bind nothing of it."""
    for spot in spots(project, rng, _is_call):
        call, place = spot.node, spot.place
        assert isinstance(call, cst.Call)
        positional = [a for a in call.args if a.keyword is None]
        count = next((k for k, a in enumerate(positional) if not simple(a.value)), len(positional))
        count = rng.randint(0, count)
        named = [a for a in call.args if a.keyword is not None and simple(a.value)]
        calm = all(simple(a.value) for a in call.args)
        moved = [*positional[:count], *(a for a in named if calm and rng.random() < 0.6)]
        if not moved:
            continue
        statement, maker = rng.choice(_STYLES)
        name = fresh(project, rng, _STEMS)
        given = [
            code(call.func),
            *(code(a.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for a in moved),
        ]
        depth = len(place.block.inside)
        (line,) = parsed(listed(f"{name} = {maker}(", given, ")\n", depth), place.module)
        rest = ", ".join(
            code(a.with_changes(comma=cst.MaybeSentinel.DEFAULT)).strip()
            for a in call.args
            if not any(a is m for m in moved)
        )
        new = cst.parse_expression(f"{name}({rest})")
        if place.block.loops and _unchanged(spot, line, moved) and rng.random() < 0.6:
            changed = hoisted(spot, new, line)
        else:
            changed = spot.replaced(new, [line])
        finished = imported(changed, statement, place.module)
        if finished is not None:
            return project.changed(place.path, finished)
    return None


def _is_call(node: cst.BaseExpression) -> bool:
    if not isinstance(node, cst.Call) or any(arg.star for arg in node.args):
        return False
    return bool(node.args) and simple(node.func)


def _unchanged(spot: Spot, line: cst.BaseStatement, moved: Sequence[cst.Arg]) -> bool:
    """Tell whether what a partial holds is bound above the outermost loop, and only there."""
    loop = spot.place.block.loops[0]
    assert isinstance(spot.node, cst.Call)
    if not isinstance(spot.node.func, cst.Name) and local(spot) & read(spot.node.func):
        return False
    if any(
        isinstance(n, ast.Attribute | ast.Subscript) for a in moved for n in ast.walk(tree(a.value))
    ):
        return False
    names = read(line)
    if inputs_of(spot) is None or names & bound([loop]):
        return False
    around = spot.place.block.inside[: spot.place.block.inside.index(loop)]
    outer = next(
        b
        for b in blocks(spot.place.module)
        if b.inside == around and any(s is loop for s in b.body)
    )
    at = next(k for k, s in enumerate(outer.body) if s is loop)
    sure = before(outer, at)
    return not (names & before(spot.place.block, spot.place.start)) - sure


REFACTORINGS = (Refactoring("a call becomes a partial", "functions", _apply),)
