"""Lets a helper do the last statements of a round at the head of the next one, and after the loop."""

from __future__ import annotations

import ast
from random import Random

import libcst as cst

from generated.refactor.code.blocks import Block, escapes, mentions, parsed, put
from generated.refactor.code.names import bound, fresh, needed, read, tree
from generated.refactor.code.scopes import TRAINING, Place, before, places, shared
from generated.refactor.code.writing import above, blank_lines, function, gap
from generated.refactor.functions.results import plain
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_CALM = {"enumerate", "range", "zip", "len", "tqdm", "iter", "list"}
_RANDOM = ("rand", "next(", "seed", "model(", "shuffle", "sample")


def _apply(project: Project, rng: Random) -> Project | None:
    """Draw a loop over what is only looked up, and how many of its last statements the helper does."""
    for place in places(project, rng, _outside_of_class_bodies, longest=1, tries=200):
        loop = place.run[0]
        if not isinstance(loop, cst.For) or loop.orelse is not None or loop.asynchronous:
            continue
        if not isinstance(loop.body, cst.IndentedBlock) or not _calm(loop.iter):
            continue
        count = len(loop.body.body)
        cuts = [k for k in range(1, count) if mentions(loop.body.body[k], *TRAINING)]
        rng.shuffle(cuts)
        if rng.random() < 0.7:
            cuts.sort(key=lambda k: mentions(loop.body.body[k:], "backward"))
            cuts.sort(key=lambda k: not mentions(loop.body.body[k:], "step("))
        for cut in cuts:
            changed = _rotated(project, place, loop, cut, rng)
            if changed is not None:
                return changed
    return None


def _calm(node: cst.BaseExpression) -> bool:
    """Tell whether the items of a loop are the same whenever they are fetched."""
    calls = [n for n in ast.walk(tree(node)) if isinstance(n, ast.Call)]
    return all(isinstance(n.func, ast.Name) and n.func.id in _CALM for n in calls)


def _rotated(
    project: Project, place: Place, loop: cst.For, cut: int, rng: Random
) -> Project | None:
    module, block = place.module, place.block
    first, last = list(loop.body.body[:cut]), list(loop.body.body[cut:])
    assert isinstance(loop.body, cst.IndentedBlock)
    inside = Place(
        place.path, module, Block(loop.body, (*block.inside, loop)), cut, len(loop.body.body)
    )
    target = bound(cst.Assign([cst.AssignTarget(loop.target)], cst.Integer("0")))
    if escapes(first) or needed(last) & target or bound(last) & read(loop.iter):
        return None
    if mentions(last, *_RANDOM) or any(isinstance(s, cst.FunctionDef) for s in first):
        return None
    passed = shared(project, inside)
    if passed is None or {"self", "cls"} & set(passed.inputs):
        return None
    flag = fresh(project, rng, ("pending", "started", "has_gradients", "unfinished"))
    name = fresh(project, rng, ("finish", "finish_round", "conclude", "complete"))
    results = plain(passed.outputs)
    call = results.statement(f"{name}({', '.join(passed.inputs)})")
    unit = module.default_indent
    later = parsed(f"if {flag}:\n{unit}{call}", module)
    unbound = [
        k for k in passed.inputs if k in bound(first) and k not in before(block, place.start)
    ]
    start = parsed(f"{flag} = False\n" + "".join(f"{k} = None\n" for k in unbound), module)
    (done,) = parsed(f"{flag} = True\n", module)
    body = loop.body.with_changes(body=[*later, *first, done])
    new = loop.with_changes(body=body, leading_lines=[x for x in loop.leading_lines if x.comment])
    put_in = [gap(start[0], blank_lines(loop)), *start[1:], new, *later]
    changed = put(module, block, place.start, place.stop, put_in)
    helper = function(module, name, passed.inputs, [*last, *parsed(results.returned, module)])
    return project.changed(place.path, above(changed, place.outermost, [helper]))


def _outside_of_class_bodies(block: Block) -> bool:
    return block.function is not None or not any(isinstance(n, cst.ClassDef) for n in block.inside)


REFACTORINGS = (Refactoring("a helper finishes a round at the head of the next", "order", _apply),)
