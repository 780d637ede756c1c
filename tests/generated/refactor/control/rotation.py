"""Rotates a loop: the statements that end it stand at the head of the next pass, and once after the loop."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import libcst as cst

from generated.refactor.code.blocks import whole
from generated.refactor.code.names import bound, needed, read
from generated.refactor.control.places import Place, bound_before, own_jumps, somewhere, taken
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_PENDING = ("pending", "waiting", "have_gradients", "started", "open_step", "dirty", "to_do")
_UPDATE = ("step", "zero_grad", "update")


def _rotated(place: Place, rng: Random) -> Project | None:
    """Draw where the tail of the loop begins; most often it holds the update of the weights."""
    node = place.statement
    if not isinstance(node, cst.For | cst.While) or node.orelse or place.at_class_level:
        return None
    if not isinstance(node.body, cst.IndentedBlock) or node.body.header.comment:
        return None
    body = list(node.body.body)
    end = len(body) - (1 if isinstance(node, cst.While) and _counts(place, body[-1]) else 0)
    starts = [k for k in range(max(1, end - 6), end) if _fit(place, node, body, k, end)]
    if not starts:
        return None
    update = [k for k in starts if any(w in place.source(body[k:end]) for w in _UPDATE)]
    start = rng.choice(update if update and rng.random() < 0.8 else starts)
    return _written(place, node, body, (start, end), rng)


def _counts(place: Place, last: cst.BaseStatement) -> bool:
    return "+=" in place.source(last) and isinstance(last, cst.SimpleStatementLine)


def _fit(
    place: Place, node: cst.For | cst.While, body: list[cst.BaseStatement], start: int, end: int
) -> bool:
    """Tell whether the statements from `start` may run before the next item is taken and tested."""
    tail = body[start:end]
    if not whole(tail) or own_jumps(tail, place):
        return False
    text = place.source(tail)
    if "yield" in place.source(body) or "print(" in text or "(" not in text:
        return False
    new = taken(place, node.target) if isinstance(node, cst.For) else set()
    new |= bound(body[end:])
    asked = read(node.test) if isinstance(node, cst.While) else set()
    reads = read(_decided(tail).body.body) if _decided(tail) else read(tail)
    return not (new & (reads | bound(tail)) or asked & bound(tail))


def _decided(tail: Sequence[cst.BaseStatement]) -> cst.If | None:
    """Return a single `if` without `else`: its test may be asked at once, its body run later."""
    node = tail[0]
    single = len(tail) == 1 and isinstance(node, cst.If) and node.orelse is None
    return node if single and isinstance(node, cst.If) else None


def _written(
    place: Place,
    node: cst.For | cst.While,
    body: list[cst.BaseStatement],
    span: tuple[int, int],
    rng: Random,
) -> Project | None:
    start, end = span
    run = body[start:end]
    tail = place.source(run).lstrip("\n")
    decided = _decided(run) if rng.random() < 0.7 or not _free(place, node, run) else None
    before, after = place.source(body[:start]), place.source(body[end:])
    leaves = own_jumps(body, place) or "return" in place.source(body)
    name = place.name(rng, *_PENDING)
    inverted = not leaves and not decided and rng.random() < 0.3
    if inverted:
        name = place.name(rng, "first", "fresh_start", "at_start", "nothing_yet")
    asked = f"not {name}" if inverted else name
    begin, then = ("True", "False") if inverted else ("False", "True")
    if decided:
        then = place.source(decided.test)
        tail = place.suite(decided.body)
    reset = f"{name} = {begin}\n" if leaves else ""
    head = f"if {asked}:\n{place.indented(tail + reset)}"
    inner = f"{head}{before}{name} = {then}\n{after}"
    inner += place.source(node.body.footer)  # type: ignore[union-attr]
    loop = _head(place, node) + place.indented(inner)
    last = f"if {asked}:\n{place.indented(tail)}"
    later = sorted((needed(run) & bound(body)) - bound_before(place))
    none = f"{' = '.join(later)} = None\n" if later else ""
    return place.replaced(f"{place.lead()}{none}{name} = {begin}\n{loop}{last}")


def _free(place: Place, node: cst.For | cst.While, run: Sequence[cst.BaseStatement]) -> bool:
    """Tell whether statements read nothing of the item of their pass."""
    return not isinstance(node, cst.For) or not taken(place, node.target) & read(run)


def _head(place: Place, node: cst.For | cst.While) -> str:
    if isinstance(node, cst.While):
        return f"while {place.source(node.test)}:\n"
    return f"for {place.source(node.target)} in {place.source(node.iter)}:\n"


REFACTORINGS = (
    Refactoring(
        "the end of a loop moves to the head of the next pass",
        "control",
        somewhere(_rotated, cst.For, cst.While),
    ),
)
