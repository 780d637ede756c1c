"""Counts the micro-batches of an accumulation in another way: down, in a circle, or by a loop over each window."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

import libcst as cst

from generated.refactor.code.blocks import parsed
from generated.refactor.code.names import bound, declared, read
from generated.refactor.control.places import (
    Place,
    any_of,
    own_jumps,
    read_outside,
    somewhere,
    taken,
)
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_COUNTS = ("left", "remaining", "countdown", "until_step", "seen", "micro", "in_window", "filled")


@dataclass(frozen=True)
class _Counted:
    """A loop that counts its passes: the index, where it starts, and what is counted."""

    node: cst.For
    index: str
    start: str
    over: cst.BaseExpression


def _counted(place: Place) -> _Counted | None:
    """Return the loop of a statement if it goes over `enumerate(...)` or a range, its index left alone."""
    node = place.statement
    if not isinstance(node, cst.For) or node.orelse or node.asynchronous or place.at_class_level:
        return None
    call = node.iter
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Name) or not call.args:
        return None
    if call.args[0].star or call.args[0].keyword:
        return None
    index, start = _index(node.target), "0"
    if call.func.value == "range":
        if len(call.args) != 1 or not isinstance(node.target, cst.Name):
            return None
    elif call.func.value != "enumerate" or not isinstance(node.target, cst.Tuple):
        return None
    elif len(call.args) == 2:
        start = place.source(call.args[1].value)
    if index is None or start not in ("0", "1") or index in bound(node.body):
        return None
    return _Counted(node, index, start, call.args[0].value)


def _index(target: cst.BaseAssignTargetExpression) -> str | None:
    """Return the name that counts in the target of a loop."""
    if isinstance(target, cst.Tuple) and len(target.elements) == 2:
        first = target.elements[0].value
        return first.value if isinstance(first, cst.Name) else None
    return target.value if isinstance(target, cst.Name) else None


def _every(loop: _Counted) -> re.Pattern[str]:
    """Return what matches the test of every k-th pass, by its text."""
    one = rf"\({loop.index} \+ 1\)" if loop.start == "0" else loop.index
    return re.compile(rf"{one} % ([\w.]+) == 0")


def _window(place: Place, loop: _Counted, test: cst.BaseExpression) -> str:
    """Return the length of the window if a test is that of every k-th pass, else nothing."""
    match = _every(loop).fullmatch(place.source(test))
    if not match:
        return ""
    length = match.group(1)
    changed = read(cst.parse_expression(length)) & (
        bound(loop.node.body) | taken(place, loop.node.target)
    )
    outside = place.block.function and declared(place.block.function.body)
    return "" if changed or outside else length


def _body(loop: _Counted) -> list[cst.BaseStatement]:
    body = loop.node.body
    return list(body.body) if isinstance(body, cst.IndentedBlock) else []


def _counts(place: Place, rng: Random) -> Project | None:
    """Turn `if (i + 1) % k == 0` at the level of the loop into a countdown, or a count that begins anew."""
    loop = _counted(place)
    if loop is None:
        return None
    body = _body(loop)
    for k, node in enumerate(body):
        if not isinstance(node, cst.If):
            continue
        length = _window(place, loop, node.test)
        if length and not own_jumps(body[:k], place):
            return _with_count(place, loop, k, length, rng)
    return None


def _with_count(place: Place, loop: _Counted, k: int, length: str, rng: Random) -> Project | None:
    body = _body(loop)
    node = body[k]
    assert isinstance(node, cst.If)
    name = place.name(rng, *_COUNTS)
    down = rng.random() < 0.6
    begin, pass_, due, anew = (
        (length, f"{name} -= 1", f"{name} == 0", length)
        if down
        else ("0", f"{name} += 1", f"{name} == {length}", "0")
    )
    if not down and rng.random() < 0.3:
        due = f"{name} >= {length}"
    reset = f"{name} = {anew}\n"
    arm = place.suite(node.body)
    arm = reset + arm if rng.random() < 0.5 or own_jumps([node], place) else arm + reset
    asked = f"if {due}:\n{place.indented(arm)}"
    if node.orelse is not None:
        asked += place.source(node.orelse)
    at_head = rng.random() < 0.5 and not own_jumps(body[:k], place)
    before = place.source(body[:k])
    counted = f"{pass_}\n"
    inner = counted + before + place.lead(node) if at_head else before + place.lead(node) + counted
    inner += asked + place.source(body[k + 1 :]) + place.source(loop.node.body.footer)  # type: ignore[attr-defined]
    return _replaced(place, loop, f"{name} = {begin}\n", inner)


def _replaced(place: Place, loop: _Counted, first: str, inner: str) -> Project | None:
    """Put a loop with another body, whose index is dropped where it is not read any more."""
    node = loop.node
    head = f"for {place.source(node.target)} in {place.source(node.iter)}:\n"
    if loop.index not in read(parsed(inner, place.module)) and _local(place, loop):
        item = node.target.elements[1].value  # type: ignore[attr-defined]
        item = item.with_changes(lpar=(), rpar=()) if isinstance(item, cst.Tuple) else item
        head = f"for {place.source(item)} in {place.source(loop.over)}:\n"
    return place.replaced(f"{place.lead()}{first}{head}{place.indented(inner)}")


def _local(place: Place, loop: _Counted) -> bool:
    """Tell whether nothing reads the index but its loop, which gets items beside it."""
    return (
        isinstance(loop.node.target, cst.Tuple)
        and place.block.function is not None
        and not read_outside(place, loop.index)
    )


def _circle(place: Place, rng: Random) -> Project | None:
    """Count in a circle from 1 to k, so that every test of the window asks for its end."""
    loop = _counted(place)
    if loop is None:
        return None
    tests = _Windows(place, loop)
    loop.node.body.visit(tests)
    if not tests.lengths or len(set(tests.lengths)) > 1:
        return None
    length = tests.lengths[0]
    name = place.name(rng, *_COUNTS)
    body = loop.node.body.visit(_Circled(place, loop, f"{name} == {length}"))
    assert isinstance(body, cst.IndentedBlock)
    inner = f"{name} = {name} % {length} + 1\n{place.suite(body)}"
    return _replaced(place, loop, f"{name} = 0\n", inner)


class _Windows(cst.CSTVisitor):
    """Collects the lengths of the windows that comparisons ask for."""

    def __init__(self, place: Place, loop: _Counted) -> None:
        self.place, self.loop = place, loop
        self.lengths: list[str] = []

    def visit_Comparison(self, node: cst.Comparison) -> None:
        length = _window(self.place, self.loop, node.with_changes(lpar=(), rpar=()))
        self.lengths += [length] if length else []


class _Circled(cst.CSTTransformer):
    def __init__(self, place: Place, loop: _Counted, test: str) -> None:
        self.place, self.loop, self.test = place, loop, test

    def leave_Comparison(
        self, original_node: cst.Comparison, updated_node: cst.Comparison
    ) -> cst.BaseExpression:
        if _window(self.place, self.loop, original_node.with_changes(lpar=(), rpar=())):
            return cst.parse_expression(self.test).with_changes(
                lpar=original_node.lpar, rpar=original_node.rpar
            )
        return updated_node


def _by_window(place: Place, rng: Random) -> Project | None:
    """Turn an accumulation into a loop over windows, with an inner loop over `islice`."""
    loop = _counted(place)
    if loop is None or not isinstance(loop.node.target, cst.Tuple):
        return None
    body = _body(loop)
    last = body[-1] if body else None
    if not isinstance(last, cst.If) or last.orelse or own_jumps(body, place) or len(body) < 2:
        return None
    if "return" in place.source(body) or "yield" in place.source(body):
        return None
    length, always = _window(place, loop, last.test), False
    if not length:
        length, always = _or_last(place, loop, last.test), True
    if not length:
        return None
    return _windowed(place, loop, length, always, rng)


def _or_last(place: Place, loop: _Counted, test: cst.BaseExpression) -> str:
    """Return the length of a window of which the last may be short."""
    if not isinstance(test, cst.BooleanOperation) or not isinstance(test.operator, cst.Or):
        return ""
    over = re.escape(place.source(loop.over))
    one = rf"{loop.index} \+ 1" if loop.start == "0" else loop.index
    ends = rf"\(?{one}\)? == len\({over}\)"
    if loop.start == "0":
        ends += rf"|{loop.index} == len\({over}\) - 1"
    right = test.right.with_changes(lpar=(), rpar=())
    if not re.fullmatch(ends, place.source(right)):
        return ""
    return _window(place, loop, test.left.with_changes(lpar=(), rpar=()))


def _windowed(
    place: Place, loop: _Counted, length: str, always: bool, rng: Random
) -> Project | None:
    body, node = _body(loop), loop.node
    last = body[-1]
    assert isinstance(last, cst.If)
    source, count = place.name(rng, "stream", "batches", "it"), place.name(rng, *_COUNTS)
    update = place.lead(last) + place.suite(last.body)
    target, over = place.source(node.target), place.source(node.iter)
    if loop.index not in read(body[:-1]) | read(last.body) and _local(place, loop):
        item = node.target.elements[1].value  # type: ignore[attr-defined]
        item = item.with_changes(lpar=(), rpar=()) if isinstance(item, cst.Tuple) else item
        target, over = place.source(item), f"iter({place.source(loop.over)})"
    inner = place.source(body[:-1]) + f"{count} += 1\n"
    window = f"{count} = 0\nfor {target} in itertools.islice({source}, {length}):\n"
    window += place.indented(inner)
    first = f"{place.lead()}{source} = {over}\n"
    if always:
        text = f"{window}if {count} == 0:\n{place.indented('break')}\n{update}"
        text = f"{first}while True:\n{place.indented(text)}"
    elif rng.random() < 0.5:
        text = f"{window}if {count} < {length}:\n{place.indented('break')}\n{update}"
        text = f"{first}while True:\n{place.indented(text)}"
    else:
        full = place.name(rng, "full", "going", "more", "again")
        text = f"{window}{full} = {count} == {length}\nif {full}:\n{place.indented(update)}"
        text = f"{first}{full} = True\nwhile {full}:\n{place.indented(text)}"
    return place.replaced(text, imports="import itertools")


REFACTORINGS = (
    Refactoring(
        "the end of a window is counted in a variable",
        "control",
        somewhere(any_of(_counts, _circle), cst.For),
    ),
    Refactoring("an accumulation loops over windows", "control", somewhere(_by_window, cst.For)),
)
