"""Takes a run of statements into a function inside of its function, which reads the variables around it."""

from __future__ import annotations

from random import Random

import libcst as cst

from generated.refactor.code.blocks import Block, parsed, put, whole
from generated.refactor.code.names import (
    bound,
    certain,
    declared,
    deleted,
    fresh,
    needed,
    read,
    tree,
)
from generated.refactor.code.scopes import (
    FRAME,
    Place,
    captured,
    declared_anywhere,
    in_order,
    is_docstring,
    live,
    parameters,
    places,
    stored_outside,
)
from generated.refactor.code.writing import above, blank_lines, function, gap
from generated.refactor.functions.extract import is_trivial
from generated.refactor.functions.results import plain
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


def _apply(project: Project, rng: Random) -> Project | None:
    """Draw a run whose function keeps a binding of all that the run changes."""
    for place in places(project, rng, lambda block: block.function is not None):
        changed = closed(project, place, rng, first=False)
        if changed is not None:
            return changed
    return None


def closed(project: Project, place: Place, rng: Random, first: bool) -> Project | None:
    """Return the project with a run in a nested function, which stands right above it or first in the body."""
    outer = place.block.function
    assert outer is not None
    run, module = place.run, place.module
    if not _free(place, outer) or is_trivial(place):
        return None
    gives = bound(run)
    outside = stored_outside(outer.body.body, run) | parameters(outer)
    kept = gives & (live(place) | captured(outer.body.body))
    rebound = gives & (needed(run) | captured(outer.body.body)) | (kept - certain(run))
    if rebound - outside:
        return None
    shareable = kept & outside
    if shareable and rng.random() < 0.4:
        rebound |= shareable
    order = in_order(run)
    returned = sorted(kept - rebound, key=order)
    name = fresh(project, rng)
    results = plain(returned)
    nonlocals = f"nonlocal {', '.join(sorted(rebound, key=order))}\n" if rebound else ""
    body = [*parsed(nonlocals, module), *run, *parsed(results.returned, module)]
    if nonlocals:
        body[1] = gap(body[1], 0)
    helper = function(module, name, (), body, len(place.block.inside))
    call = parsed(results.statement(f"{name}()"), module)
    call[0] = gap(call[0], blank_lines(run[0]))
    if not first:
        lines = blank_lines(run[0])
        new = [gap(helper, max(1, lines) if place.start else 0), gap(call[0], 1), *call[1:]]
        return project.changed(place.path, put(module, place.block, place.start, place.stop, new))
    return project.changed(place.path, _at_the_top(place, outer, helper, call))


def _free(place: Place, outer: cst.FunctionDef) -> bool:
    """Tell whether code may stand in a function of its own here, its names looked up from there."""
    run = place.run
    if not whole(run) or deleted(tree(run)) or read(run) & FRAME:
        return False
    scopes = [node for node in place.block.inside if isinstance(node, cst.FunctionDef)]
    changed = {name for scope in scopes for name in declared(scope.body.body)}
    return not changed and not deleted(tree(outer.body.body)) and not outer.asynchronous


def _at_the_top(
    place: Place,
    outer: cst.FunctionDef,
    helper: cst.FunctionDef,
    call: list[cst.BaseStatement],
) -> cst.Module:
    changed = put(place.module, place.block, place.start, place.stop, call)
    where = place.block.inside.index(outer)
    node: cst.CSTNode = changed.body[place.outermost]
    for old, inner in zip(place.block.inside[:where], place.block.inside[1:], strict=False):
        held = old.body.body if isinstance(old, cst.ClassDef | cst.FunctionDef) else None
        if held is None:
            return place.module
        node = node.body.body[next(k for k, s in enumerate(held) if s is inner)]  # type: ignore[attr-defined]
    assert isinstance(node, cst.FunctionDef)
    members = list(node.body.body)
    at = 1 if is_docstring(members[0]) else 0
    members[at:at] = [gap(helper, at)]
    members[at + 1] = gap(members[at + 1], max(1, blank_lines(members[at + 1])))
    body = node.body.with_changes(body=members)
    top = changed.body[place.outermost]
    whole_top = (
        top.with_deep_changes(node, body=body) if top is not node else node.with_changes(body=body)
    )
    return changed.with_changes(
        body=[whole_top if k == place.outermost else s for k, s in enumerate(changed.body)]
    )


def _global(project: Project, rng: Random) -> Project | None:
    """Draw a run at the level of the module; its function declares global what it binds."""
    for place in places(project, rng, _of_module):
        run, module = place.run, place.module
        if not whole(run) or deleted(tree(run)) or read(run) & FRAME or is_trivial(place):
            continue
        if declared_anywhere(module) & bound(run):
            continue
        later = live(place) | captured(module.body) | needed(run)
        kept = bound(run) & (later if place.path == project.entry else bound(run))
        name = fresh(project, rng)
        line = f"global {', '.join(sorted(kept, key=in_order(run)))}\n" if kept else ""
        body = [*parsed(line, module), *run]
        if line:
            body[1] = gap(body[1], 0)
        call = parsed(f"{name}()\n", module)
        call[0] = gap(call[0], blank_lines(run[0]))
        changed = put(module, place.block, place.start, place.stop, call)
        helper = function(module, name, (), body)
        return project.changed(place.path, above(changed, place.outermost, [helper]))
    return None


def _of_module(block: Block) -> bool:
    return not any(isinstance(n, cst.FunctionDef | cst.ClassDef) for n in block.inside)


REFACTORINGS = (
    Refactoring("a run of statements becomes a closure", "functions", _apply),
    Refactoring("a run of statements becomes a function of global variables", "functions", _global),
)
