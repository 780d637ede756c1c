"""Puts the head of a loop and its first statements into a generator, which yields what the rest needs."""

from __future__ import annotations

from random import Random

import libcst as cst

from generated.refactor.code.blocks import Block, escapes, mentions, parsed, put
from generated.refactor.code.names import bound, certain, deleted, fresh, needed, read, tree
from generated.refactor.code.scopes import (
    FRAME,
    MOST_INPUTS,
    TRAINING,
    Place,
    before,
    captured,
    declared_around,
    in_order,
    live,
    module_variables,
    places,
    variables,
)
from generated.refactor.code.writing import above, function, gap
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_STEMS = ("rounds", "parts", "produced", "stream", "steps_of", "stages")


def _apply(project: Project, rng: Random) -> Project | None:
    """Draw a loop and where to cut its body."""
    for place in places(project, rng, _outside_of_class_bodies, longest=1, tries=200):
        node = place.run[0]
        if not isinstance(node, cst.For) or node.asynchronous or node.orelse is not None:
            continue
        if not isinstance(node.body, cst.IndentedBlock) or len(node.body.body) < 2:
            continue
        cuts = list(range(1, len(node.body.body)))
        rng.shuffle(cuts)
        if rng.random() < 0.7:
            cuts.sort(key=lambda cut: not mentions(node.body.body[cut - 1], *TRAINING))
        for cut in cuts:
            changed = _cut(project, place, node, cut, rng)
            if changed is not None:
                return changed
    return None


def _cut(project: Project, place: Place, loop: cst.For, cut: int, rng: Random) -> Project | None:
    """Return the project with the first statements of a loop in a generator."""
    first, rest = list(loop.body.body[:cut]), list(loop.body.body[cut:])
    if escapes(first) or escapes(rest) & {"yield", "await"} or not _plain(place, first):
        return None
    target = bound(cst.Assign([cst.AssignTarget(loop.target)], cst.Integer("0")))
    made = target | bound(first)
    taken = needed(first) - target
    if bound(rest) & (taken | (needed(first) & bound(first))) or captured(first):
        return None
    scopes = [node for node in place.block.inside if isinstance(node, cst.FunctionDef)]
    body = scopes[-1].body.body if scopes else place.module.body
    if captured(body) & made or declared_around(place) & (made | taken | read(first)):
        return None
    later = live(place)
    if not scopes and place.path != project.entry:
        later = later | made
    given = made & (needed(rest) | later)
    if given - target - certain(first):
        return None
    own = set().union(*(variables(s) for s in scopes)) if scopes else module_variables(place.module)
    inputs = sorted((taken | read(cst.Expr(loop.iter))) & own, key=in_order([loop]))
    here = variables(scopes[-1]) if scopes else own
    if (set(inputs) & here) - before(place.block, place.start) or len(inputs) > MOST_INPUTS:
        return None
    if {"self", "cls"} & set(inputs):
        return None
    return _written(
        project, place, loop, (first, rest), (inputs, sorted(given, key=in_order([loop]))), rng
    )


def _plain(place: Place, first: list[cst.BaseStatement]) -> bool:
    kinds = (cst.FunctionDef, cst.ClassDef, cst.Import, cst.ImportFrom)
    if any(isinstance(s, kinds) for s in first) or mentions(
        first, "import ", "global ", "nonlocal "
    ):
        return False
    return not (deleted(tree(first)) or read(first) & (FRAME | {"next"}))


def _written(
    project: Project,
    place: Place,
    loop: cst.For,
    parts: tuple[list[cst.BaseStatement], list[cst.BaseStatement]],
    names: tuple[list[str], list[str]],
    rng: Random,
) -> Project:
    (first, rest), (inputs, given) = parts, names
    module, name = place.module, fresh(project, rng, _STEMS)
    together = ", ".join(given)
    pause = parsed(f"yield {together}".rstrip() + "\n", module)
    inner = loop.body.with_changes(body=[*first, *pause], footer=())
    helper = function(module, name, inputs, [loop.with_changes(body=inner, leading_lines=())])
    unit = module.default_indent
    text = f"for {together or '_'} in {name}({', '.join(inputs)}):\n{unit}pass\n"
    (new,) = parsed(text, module)
    assert isinstance(new, cst.For)
    body = loop.body.with_changes(body=[gap(rest[0], 0), *rest[1:]])
    new = new.with_changes(body=body, leading_lines=loop.leading_lines)
    changed = put(module, place.block, place.start, place.stop, [new])
    return project.changed(place.path, above(changed, place.outermost, [helper]))


def _outside_of_class_bodies(block: Block) -> bool:
    return block.function is not None or not any(isinstance(n, cst.ClassDef) for n in block.inside)


REFACTORINGS = (Refactoring("the head of a loop becomes a generator", "functions", _apply),)
