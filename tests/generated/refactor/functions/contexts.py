"""Puts what stands around statements into a context manager: set-up above its `yield`, the rest below."""

from __future__ import annotations

from random import Random

import libcst as cst

from generated.refactor.code.blocks import Block, parsed, put
from generated.refactor.code.expressions import Spot
from generated.refactor.code.names import bound, certain, code, fresh, needed
from generated.refactor.code.scopes import MOST_INPUTS, Place, captured, live, places, shared
from generated.refactor.code.writing import above, blank_lines, function, gap, imported
from generated.refactor.functions.expressions import inputs_of
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_STEMS = ("stage", "managed", "section", "around", "scope")
_STYLES = (
    ("import contextlib", "contextlib.contextmanager"),
    ("from contextlib import contextmanager", "contextmanager"),
)


def _defined(
    project: Project,
    place: Place,
    helper: tuple[str, list[str], list[cst.BaseStatement]],
    changed: cst.Module,
    rng: Random,
) -> Project | None:
    """Return the project with a context manager above the code that enters it."""
    statement, decorator = rng.choice(_STYLES)
    name, inputs, body = helper
    made = function(place.module, name, inputs, body, 0, decorator)
    finished = imported(above(changed, place.outermost, [made]), statement, place.module)
    return None if finished is None else project.changed(place.path, finished)


def _with(project: Project, rng: Random) -> Project | None:
    """Draw a `with` of one call; its manager enters it, and yields what it gave."""
    for place in places(project, rng, _outside_of_class_bodies, longest=1):
        node, module = place.run[0], place.module
        if not isinstance(node, cst.With) or len(node.items) != 1 or node.asynchronous:
            continue
        item = node.items[0]
        inputs = inputs_of(Spot(place, item.item))
        target = item.asname.name if item.asname else None
        if not isinstance(item.item, cst.Call) or not isinstance(target, cst.Name | None):
            continue
        if inputs is None or {"self", "cls"} & set(inputs):
            continue
        name = fresh(project, rng, _STEMS)
        given = f" {target.value}" if target else ""
        inner = parsed(f"yield{given}\n", module)
        entered = gap(node.with_changes(body=cst.IndentedBlock(body=inner), leading_lines=()), 0)
        call = cst.parse_expression(f"{name}({', '.join(inputs)})")
        new = node.with_changes(items=[item.with_changes(item=call)])
        changed = put(module, place.block, place.start, place.stop, [new])
        result = _defined(project, place, (name, inputs, [entered]), changed, rng)
        if result is not None:
            return result
    return None


def _around(project: Project, rng: Random) -> Project | None:
    """Draw a run, and a middle part of it that binds nothing which the last part needs."""
    for place in places(project, rng, _outside_of_class_bodies, longest=8, tries=50):
        if len(place.run) < 2:
            continue
        cut = rng.randint(place.start, place.stop - 2)
        end = rng.randint(cut + 1, place.stop - 1)
        result = _surrounded(project, place, cut, end, rng)
        if result is not None:
            return result
    return None


def _surrounded(project: Project, place: Place, cut: int, end: int, rng: Random) -> Project | None:
    module, block = place.module, place.block
    first, middle, last = (
        Place(place.path, module, block, a, b)
        for a, b in ((place.start, cut), (cut, end), (end, place.stop))
    )
    if bound(last.run) & live(place) or bound(middle.run) & needed(last.run):
        return None
    if shared(project, middle) is None or any(_defines(s) for s in place.run):
        return None
    after = shared(project, last)
    if after is None or after.outputs:
        return None
    inputs, made = [], set[str]()
    yielded: list[str] = []
    if first.run:
        before = shared(project, first)
        if before is None:
            return None
        inputs = list(before.inputs)
        made = certain(first.run)
        wanted = needed(middle.run) | live(place)
        if captured(middle.run) & bound(first.run):
            return None
        yielded = [k for k in before.outputs if k in wanted]
        if set(before.outputs) - made:
            return None
    if (
        bound(middle.run) & (needed(last.run) | set(inputs))
        or bound(first.run) & set(after.inputs) - made
    ):
        return None
    inputs += [k for k in after.inputs if k not in made and k not in inputs]
    if bound(first.run) & set(inputs) & set(after.inputs) or {"self", "cls"} & set(inputs):
        return None
    if len(inputs) > MOST_INPUTS:
        return None
    name = fresh(project, rng, _STEMS)
    together = ", ".join(yielded)
    pause = parsed(f"yield {together}".rstrip() + "\n", module)
    rest = list(last.run)
    body = [*first.run, *pause, *rest]
    given = f" as ({together})" if len(yielded) > 1 else f" as {together}" if yielded else ""
    unit = module.default_indent
    (new,) = parsed(f"with {name}({', '.join(inputs)}){given}:\n{unit}pass\n", module)
    assert isinstance(new, cst.With)
    inner = [gap(middle.run[0], 0), *middle.run[1:]]
    new = gap(new.with_changes(body=cst.IndentedBlock(body=inner)), blank_lines(place.run[0]))
    changed = put(module, block, place.start, place.stop, [new])
    return _defined(project, place, (name, inputs, body), changed, rng)


def _defines(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.FunctionDef | cst.ClassDef) or "__name__" in code(node)


def _outside_of_class_bodies(block: Block) -> bool:
    return block.function is not None or not any(isinstance(n, cst.ClassDef) for n in block.inside)


REFACTORINGS = (
    Refactoring("a with statement goes through a context manager", "functions", _with),
    Refactoring("statements around others become a context manager", "functions", _around),
)
