"""Tests a loop at the end of a pass instead of at its head, where the first test is known to hold."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from random import Random

import libcst as cst

from generated.refactor.code.names import bound, declared
from generated.refactor.code.source import source, sources
from generated.refactor.control.places import (
    Place,
    negated,
    only,
    own_jumps,
    read_outside,
    somewhere,
    syntax,
    unchanging,
)
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_ORDER: dict[type[ast.cmpop], tuple[Callable[[int, int], bool], str]] = {
    ast.Lt: (operator.lt, ">="),
    ast.LtE: (operator.le, ">"),
    ast.Gt: (operator.gt, "<="),
    ast.GtE: (operator.ge, "<"),
    ast.NotEq: (operator.ne, "=="),
}
_LEAVING = cst.Return | cst.Break | cst.Raise


def _tested_last(place: Place, rng: Random) -> Project | None:
    node = place.statement
    assert isinstance(node, cst.For | cst.While)
    if node.orelse or place.at_class_level or not isinstance(node.body, cst.IndentedBlock):
        return None
    body = list(node.body.body)
    last = only(body[-1])
    if node.body.header.comment or "continue" in own_jumps(body, place):
        return None
    if isinstance(last, _LEAVING):
        return None
    inner = place.source(body) + place.source(node.body.footer)
    if isinstance(node, cst.While):
        end = _end_of_while(place, node, rng)
        return None if end is None else _written(place, "", inner, end)
    return _counted(place, node, inner, rng)


def _written(place: Place, above: str, inner: str, end: str) -> Project | None:
    exit_ = f"if {end}:\n{place.indented('break')}\n"
    return place.replaced(f"{place.lead()}{above}while True:\n{place.indented(inner + exit_)}")


def _end_of_while(place: Place, node: cst.While, rng: Random) -> str | None:
    """Return the test that ends the loop, None where it may hold at the start."""
    test = syntax(place.source(node.test))
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or type(test.ops[0]) not in _ORDER:
        return None
    holds, opposite = _ORDER[type(test.ops[0])]
    left, right = (_value(place, side) for side in (test.left, test.comparators[0]))
    if left is None or right is None or not holds(left, right):
        return None
    if rng.random() < 0.6:
        return f"{ast.unparse(test.left)} {opposite} {ast.unparse(test.comparators[0])}"
    return negated(place, node.test)


def _counted(place: Place, node: cst.For, inner: str, rng: Random) -> Project | None:
    """Count the passes of a loop over a range, and ask at their end whether there is another."""
    call = syntax(place.source(node.iter))
    if node.asynchronous or not isinstance(node.target, cst.Name) or not isinstance(call, ast.Call):
        return None
    if not isinstance(call.func, ast.Name) or call.func.id != "range" or call.keywords:
        return None
    if len(call.args) not in (1, 2):
        return None
    name, body = node.target.value, [node.body]
    first, stop = call.args if len(call.args) == 2 else [ast.Constant(0), call.args[0]]
    values = _value(place, first), _value(place, stop)
    if values[0] is None or values[1] is None or values[0] >= values[1]:
        return None
    if not unchanging(place, ast.unparse(stop), body) or _kept(place, node, name):
        return None
    if name == "_":
        name = place.name(rng, "done", "passes", "turn", "count")
    sign = rng.choice([">=", "=="])
    start = f"{name} = {ast.unparse(first)}\n"
    return _written(place, start, f"{inner}{name} += 1\n", f"{name} {sign} {ast.unparse(stop)}")


def _kept(place: Place, node: cst.For, name: str) -> bool:
    """Tell whether something may see the last value of a target, or bind it."""
    if read_outside(place, name) or name in bound([node.body]) | declared([place.scope]):
        return True
    kinds = ast.FunctionDef | ast.Lambda | ast.ClassDef | ast.GeneratorExp
    return any(
        isinstance(inner, ast.Name) and inner.id == name
        for held in ast.walk(ast.parse(place.bare()))
        if isinstance(held, kinds)
        for inner in ast.walk(held)
    )


def _value(place: Place, node: ast.expr) -> int | None:
    """Return the number that an expression is when a loop begins, as far as the project tells."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _value(place, node.left), _value(place, node.right)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Name):
        near = _set_above(place, node.id)
        return _constant(place, node.id) if near is None else near
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return _default(place.project, node.attr)
    return None


def _set_above(place: Place, name: str) -> int | None:
    """Return the number that a name is given above the loop in its block."""
    if any(name in _declared(text) for text in place.project.files.values()):
        return None
    for statement in reversed(place.block.body[: place.index]):
        if name in bound([statement]):
            small = only(statement)
            if not isinstance(small, cst.Assign) or len(small.targets) != 1:
                return None
            if not isinstance(small.targets[0].target, cst.Name):
                return None
            value = syntax(place.source(small.value))
            held = isinstance(value, ast.Constant) and type(value.value) is int
            return value.value if held else None  # type: ignore[union-attr,attr-defined]
    return None


def _declared(text: str) -> set[str]:
    kinds = ast.Global | ast.Nonlocal
    nodes = ast.walk(source(text).tree)
    return {word for n in nodes if isinstance(n, kinds) for word in n.names}


def _constant(place: Place, name: str) -> int | None:
    """Return the number that a name is bound to once in its file."""
    src = source(place.project.files[place.path])
    stores: list[ast.AST] = []
    for node in ast.walk(src.tree):
        if name in (
            getattr(node, "arg", ""),
            getattr(node, "asname", ""),
            getattr(node, "name", ""),
        ):
            return None
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            stores.append(src.parents[node])
    held = stores[0] if len(stores) == 1 else None
    if not isinstance(held, ast.Assign) or not isinstance(held.targets[0], ast.Name):
        return None
    value = held.value
    return value.value if isinstance(value, ast.Constant) and type(value.value) is int else None


def _default(project: Project, attribute: str) -> int | None:
    """Return the default of the option that an attribute is, if nothing but the parser sets it."""
    found: list[int] = []
    for src in sources(project).values():
        for node in ast.walk(src.tree):
            if isinstance(node, ast.Attribute) and node.attr == attribute:
                if not isinstance(node.ctx, ast.Load):
                    return None
            if isinstance(node, ast.Call) and _option(node.args) == attribute:
                values = [k.value for k in node.keywords if k.arg == "default"]
                found += [
                    v.value for v in values if isinstance(v, ast.Constant) and type(v.value) is int
                ]
    return found[0] if len(found) == 1 else None


def _option(arguments: Sequence[ast.expr]) -> str:
    texts = [a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return next((t[2:].replace("-", "_") for t in texts if t.startswith("--")), "")


REFACTORINGS = (
    Refactoring(
        "a loop is tested at the end of a pass",
        "control",
        somewhere(_tested_last, cst.For, cst.While),
    ),
)
