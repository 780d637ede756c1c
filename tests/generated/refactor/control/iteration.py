"""Writes a loop in another way: with an iterator, a counter, a `while`, a `break` or an `else`."""

from __future__ import annotations

from random import Random

import libcst as cst

from generated.refactor.code.names import bound, declared, read
from generated.refactor.control.places import (
    Place,
    any_of,
    loads,
    negated,
    own_jumps,
    read_outside,
    simple,
    somewhere,
    taken,
)
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_ITERATORS = ("iterator", "batches", "it", "source", "stream", "data_iter")
_ITEMS = ("item", "batch_item", "entry", "following", "upcoming", "element")
_COUNTERS = ("index", "counter", "round_index", "turn", "count", "done_rounds")


def _plain(node: cst.BaseStatement) -> cst.For | None:
    """Return a `for` that is neither asynchronous nor has an `else`."""
    if isinstance(node, cst.For) and node.asynchronous is None and node.orelse is None:
        return node
    return None


def _next(place: Place, rng: Random) -> Project | None:
    """Turn a `for` into a `while` that asks an iterator for the next item."""
    node = _plain(place.statement)
    if node is None or place.at_class_level:
        return None
    target, body = place.source(node.target), place.suite(node.body)
    source = place.source(node.iter)
    if isinstance(node.iter, cst.Tuple) and not node.iter.lpar:
        source = f"({source})"
    iterator = place.name(rng, *_ITERATORS)
    first = f"{place.lead()}{iterator} = iter({source})\n"
    drawn = rng.randrange(4)
    if isinstance(node.target, cst.Name) and not loads(place.source(place.scope))[target]:
        return _unread(place, rng, first, iterator, body)
    pairs = isinstance(node.target, cst.Tuple)
    if drawn == 0 or (drawn == 1 and (not pairs or own_jumps(node.body.body, place))):
        loop = _try_next(place, iterator, target, body)
    elif drawn == 1:
        item = place.name(rng, *_ITEMS)
        advance = f"{item} = next({iterator}, None)\n"
        loop = f"{advance}while {item} is not None:\n" + place.indented(
            f"{target} = {item}\n{body}{advance}"
        )
    else:
        item, end = place.name(rng, *_ITEMS), place.name(rng, "end", "stop", "nothing", "sentinel")
        if pairs and drawn == 2:
            end = "None"
        else:
            first += f"{end} = object()\n"
        simple_target = isinstance(node.target, cst.Name)
        item = target if simple_target and not _after(place, target) else item
        loop = f"while ({item} := next({iterator}, {end})) is not {end}:\n"
        loop += place.indented(body if item == target else f"{target} = {item}\n{body}")
    return place.replaced(first + loop)


def _unread(place: Place, rng: Random, first: str, iterator: str, body: str) -> Project | None:
    """Write the loop without a name for what nothing reads."""
    if rng.random() < 0.5:
        return place.replaced(first + _try_next(place, iterator, "", body))
    end = place.name(rng, "end", "stop", "nothing", "sentinel")
    loop = f"{end} = object()\nwhile next({iterator}, {end}) is not {end}:\n"
    return place.replaced(first + loop + place.indented(body))


def _after(place: Place, name: str) -> bool:
    """Tell whether a name may be asked for after the loop, when it holds the sentinel."""
    return read_outside(place, name) or place.block.function is None


def _try_next(place: Place, iterator: str, target: str, body: str) -> str:
    one = place.indented
    start = f"{target} = " if target else ""
    return (
        "while True:\n"
        + one(f"try:\n{one(f'{start}next({iterator})')}\nexcept StopIteration:\n")
        + one(one("break\n"))
        + one(body)
    )


def _range(place: Place, rng: Random) -> Project | None:
    """Turn a `for` over a range into a `while` with a counter."""
    node = _plain(place.statement)
    if node is None or not isinstance(node.target, cst.Name):
        return None
    arguments = _call(node.iter, "range")
    if arguments is None or len(arguments) not in (1, 2):
        return None
    texts = [place.source(a.value) for a in arguments]
    start, stop = texts if len(texts) == 2 else ("0", texts[0])
    name = node.target.value
    if not simple(stop) or _changes(place, stop) or name in bound(node.body):
        return None
    if "continue" in own_jumps(node.body.body, place):
        return None
    if name == "_":
        name = place.name(rng, *_COUNTERS)
    elif read_outside(place, name) or place.block.function is None:
        return None
    body = place.suite(node.body)
    text = f"{place.lead()}{name} = {start}\nwhile {name} < {stop}:\n"
    return place.replaced(text + place.indented(f"{body}{name} += 1\n"))


def _changes(place: Place, text: str) -> bool:
    """Tell whether the body of a loop binds what an expression reads."""
    expression = cst.parse_expression(text)
    node = place.statement
    assert isinstance(node, cst.For)
    return bool(read(expression) & (bound(node.body) | taken(place, node.target)))


def _call(node: cst.BaseExpression, name: str) -> list[cst.Arg] | None:
    """Return the plain arguments of a call of a built-in function."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name):
        return None
    if node.func.value != name or any(a.star or a.keyword for a in node.args):
        return None
    return list(node.args)


def _counter(place: Place, rng: Random) -> Project | None:
    """Turn `for i, x in enumerate(xs)` into a `for` with a counter of its own."""
    node = _plain(place.statement)
    if node is None or not isinstance(node.target, cst.Tuple) or len(node.target.elements) != 2:
        return None
    index, item = (e.value for e in node.target.elements)
    arguments = _enumerated(node.iter)
    if arguments is None or not isinstance(index, cst.Name) or place.at_class_level:
        return None
    name, (over, start) = index.value, arguments
    own = declared(place.block.function.body) if place.block.function else set()
    if name in bound(node.body) | taken(place, item) | own:
        return None
    target = place.source(item.with_changes(lpar=(), rpar=()))
    body = place.suite(node.body)
    if isinstance(item, cst.Tuple) and len(item.elements) == 1:
        target = place.source(item)
    loop = f"for {target} in {place.source(over)}:\n"
    begin = place.source(start) if start else "0"
    jumps = own_jumps(node.body.body, place)
    late = read_outside(place, name) or place.block.function is None or "continue" in jumps
    if late or rng.random() < 0.4:
        begin = "-1" if begin == "0" else f"{begin} - 1"
        text = f"{name} = {begin}\n{loop}{place.indented(f'{name} += 1{chr(10)}{body}')}"
    else:
        text = f"{name} = {begin}\n{loop}{place.indented(f'{body}{name} += 1{chr(10)}')}"
    return place.replaced(place.lead() + text)


def _enumerated(
    node: cst.BaseExpression,
) -> tuple[cst.BaseExpression, cst.BaseExpression | None] | None:
    """Return what `enumerate` counts, and where it starts."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name):
        return None
    arguments = node.args
    if node.func.value != "enumerate" or not 1 <= len(arguments) <= 2:
        return None
    if any(a.star for a in arguments) or arguments[0].keyword:
        return None
    start = arguments[1] if len(arguments) == 2 else None
    if start and start.keyword and start.keyword.value != "start":
        return None
    return arguments[0].value, start.value if start else None


def _do_while(place: Place, rng: Random) -> Project | None:
    """Turn `while c` into `while True` with a `break`."""
    node = place.statement
    if not isinstance(node, cst.While) or node.orelse is not None:
        return None
    test = place.source(node.test)
    if test in ("True", "1") or ":=" in test:
        return None
    leave = f"if {negated(place, node.test)}:\n{place.indented('break')}\n"
    body = place.indented(leave + place.suite(node.body))
    return place.replaced(f"{place.lead()}while True:\n{body}")


def _head_test(place: Place, rng: Random) -> Project | None:
    """Turn a `break` at the head of `while True` into its test."""
    node = place.statement
    if not isinstance(node, cst.While) or place.source(node.test) not in ("True", "1"):
        return None
    if not isinstance(node.body, cst.IndentedBlock) or len(node.body.body) < 2:
        return None
    first = node.body.body[0]
    if not isinstance(first, cst.If) or first.orelse or place.suite(first.body) != "break\n":
        return None
    body = node.body.with_changes(body=node.body.body[1:])
    text = f"while {negated(place, first.test)}:\n{place.indented(place.suite(body))}"
    return place.replaced(place.lead() + place.lead(first) + text)


def _else(place: Place, rng: Random) -> Project | None:
    """Put the statements after a loop without `break` into its `else`."""
    node = place.statement
    if not isinstance(node, cst.For | cst.While) or node.orelse or not place.rest:
        return None
    count = rng.randint(1, min(3, len(place.rest)))
    moved = place.rest[:count]
    if any(isinstance(s, cst.FunctionDef | cst.ClassDef) for s in moved):
        return None
    if "break" in own_jumps(node.body.body, place) or "import" in place.source(moved):
        return None
    rest = place.source(moved).lstrip("\n")
    return place.replaced(f"{place.lead()}{place.bare()}else:\n{place.indented(rest)}", 1 + count)


_WHILE = any_of(_do_while, _head_test)

REFACTORINGS = tuple(
    Refactoring(name, "control", somewhere(change, *kinds))
    for name, change, kinds in (
        ("a for asks an iterator for the next item", _next, (cst.For,)),
        ("a for over a range becomes a while", _range, (cst.For,)),
        ("enumerate becomes a counter", _counter, (cst.For,)),
        ("the test of a while becomes a break", _WHILE, (cst.While,)),
        ("what follows a loop becomes its else", _else, (cst.For, cst.While)),
    )
)
