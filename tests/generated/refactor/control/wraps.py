"""Puts statements into `try` or `with`, and writes a `with` of several managers as several."""

from __future__ import annotations

from random import Random

import libcst as cst

from generated.refactor.code.blocks import escapes
from generated.refactor.control.places import Place, any_of, somewhere
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_ANY = cst.SimpleStatementLine, cst.If, cst.With, cst.For, cst.While


def _run(place: Place, rng: Random, longest: int) -> list[cst.BaseStatement] | None:
    """Draw how many statements from here are put into another, none of which defines or imports."""
    if place.at_class_level:
        return None
    count = min(rng.randint(1, longest), 1 + len(place.rest))
    run = list(place.block.body[place.index : place.index + count])
    text = place.source(run)
    if any(isinstance(s, cst.FunctionDef | cst.ClassDef) for s in run):
        return None
    words = ("import", "nonlocal ", "global ", '"""')
    return None if any(word in text for word in words) else run


def _try(place: Place, rng: Random) -> Project | None:
    """Put statements into a `try` that tells of an interruption, or has what follows in its `else`."""
    run = _run(place, rng, 5)
    if run is None:
        return None
    text = place.lead() + "try:\n" + place.indented(place.source(run).lstrip("\n"))
    if place.lead().strip():
        text = "try:\n" + place.indented(place.source(run))
    text += "except KeyboardInterrupt:\n" + place.indented('print("interrupted")\nraise\n')
    after = place.block.body[place.index + len(run) : place.index + len(run) + 1]
    count = len(run)
    small = bool(after) and isinstance(after[0], cst.SimpleStatementLine | cst.If | cst.With)
    if small and not escapes(run) and "import" not in place.source(after) and rng.random() < 0.4:
        text += "else:\n" + place.indented(place.source(after).lstrip("\n"))
        count += 1
    return place.replaced(text, count)


def _finally(place: Place, rng: Random) -> Project | None:
    """Put statements into a `try` and the one after them into its `finally`."""
    run = _run(place, rng, 4)
    end = place.index + len(run or ())
    if run is None or end >= len(place.block.body) or escapes(run):
        return None
    last = place.block.body[end]
    text = place.source(run)
    inside = any(isinstance(n, cst.Try) for n in place.block.inside)
    if inside or "next(" in text or "raise" in text or "exit" in text:
        return None
    if not isinstance(last, cst.SimpleStatementLine | cst.If) or escapes([last]):
        return None
    if "import" in place.source(last):
        return None
    body = place.indented(text.lstrip("\n"))
    final = place.indented(place.source(last).lstrip("\n"))
    lead = "\n" if text.startswith("\n") else ""
    return place.replaced(f"{lead}try:\n{body}finally:\n{final}", len(run) + 1)


def _null(place: Place, rng: Random) -> Project | None:
    """Put statements into a context manager that does nothing."""
    run = _run(place, rng, 5)
    if run is None:
        return None
    managers = ("contextlib.nullcontext()", "contextlib.ExitStack()", "nullcontext()")
    manager = rng.choice(managers)
    line = "from contextlib import nullcontext" if manager[0] == "n" else "import contextlib"
    text = place.source(run)
    lead = "\n" if text.startswith("\n") else ""
    body = place.indented(text.lstrip("\n"))
    return place.replaced(f"{lead}with {manager}:\n{body}", len(run), line)


def _enabled(place: Place, rng: Random) -> Project | None:
    """Put statements that run with gradients into a context that turns them on."""
    run = _run(place, rng, 6)
    if run is None or place.block.function is None:
        return None
    around = [n for n in place.block.inside if isinstance(n, cst.With)]
    if any("grad" in place.source(n.items) for n in around):
        return None
    decorators = place.source(place.block.function.decorators)
    text, whole = place.source(run), place.source(place.block.function)
    if "grad" in decorators or "no_grad" in text or "torch" not in place.project.files[place.path]:
        return None
    if "backward" not in whole and "scale_loss" not in whole:
        return None
    if "import torch\n" not in place.project.files[place.path]:
        return None
    manager = rng.choice(("torch.enable_grad()", "torch.set_grad_enabled(True)"))
    lead = "\n" if text.startswith("\n") else ""
    return place.replaced(
        f"{lead}with {manager}:\n{place.indented(text.lstrip(chr(10)))}", len(run)
    )


def _split(place: Place, rng: Random) -> Project | None:
    """Turn a `with` of several managers into nested ones."""
    node = place.statement
    if not isinstance(node, cst.With) or len(node.items) < 2 or node.asynchronous:
        return None
    at = rng.randint(1, len(node.items) - 1)
    first = _items(place, node.items[:at])
    second = f"with {_items(place, node.items[at:])}:\n{place.indented(place.suite(node.body))}"
    return place.replaced(f"{place.lead()}with {first}:\n{place.indented(second)}")


def _items(place: Place, items: list[cst.WithItem] | tuple[cst.WithItem, ...]) -> str:
    bare = [item.with_changes(comma=cst.MaybeSentinel.DEFAULT) for item in items]
    return ", ".join(place.source(item).strip() for item in bare)


def _merged(place: Place, rng: Random) -> Project | None:
    """Turn a `with` that holds only a `with` into one of several managers."""
    node = place.statement
    if not isinstance(node, cst.With) or len(node.body.body) != 1 or node.asynchronous:
        return None
    inner = node.body.body[0]
    if not isinstance(inner, cst.With) or inner.asynchronous or node.lpar or inner.lpar:
        return None
    items = _items(place, [*node.items, *inner.items])
    body = place.indented(place.suite(inner.body))
    return place.replaced(f"{place.lead()}{place.lead(inner)}with {items}:\n{body}")


def _stacked(place: Place, rng: Random) -> Project | None:
    """Enter the managers of a `with` by a stack."""
    node = place.statement
    if not isinstance(node, cst.With) or node.asynchronous or len(node.items) > 2:
        return None
    stack = place.name(rng, "stack", "exits", "held", "contexts")
    lines = []
    for item in node.items:
        entered = f"{stack}.enter_context({place.source(item.item)})\n"
        lines.append((f"{place.source(item.asname.name)} = " if item.asname else "") + entered)
    body = "".join(lines) + place.suite(node.body)
    text = f"{place.lead()}with contextlib.ExitStack() as {stack}:\n{place.indented(body)}"
    return place.replaced(text, imports="import contextlib")


REFACTORINGS = tuple(
    Refactoring(name, "control", somewhere(change, *kinds))
    for name, change, kinds in (
        ("statements go into a try", _try, _ANY),
        ("statements go into a try with a finally", _finally, _ANY),
        ("statements go into a context that does nothing", _null, _ANY),
        ("statements go into a context with gradients", _enabled, _ANY),
        ("a with is split or merged", any_of(_split, _merged), (cst.With,)),
        ("a with enters a stack", _stacked, (cst.With,)),
    )
)
