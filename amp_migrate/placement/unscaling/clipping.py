"""Where `unscale_` goes in a function, and which clips must move into the accumulation boundary."""

from __future__ import annotations

import ast
from functools import partial

from amp_migrate.facts.paths import defs, is_place, uses
from amp_migrate.facts.tree import Tree
from amp_migrate.flow.cfg.subject import Fork, question
from amp_migrate.placement.backwards.penalty import place_before
from amp_migrate.placement.finding.renamed import reached
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.off import runs_unscaled
from amp_migrate.placement.reads import gradients
from amp_migrate.placement.reads.gradients import Use
from amp_migrate.placement.reads.limited import limited
from amp_migrate.placement.reads.reported import scaled_reads
from amp_migrate.placement.reads.whose import goes_to_its_own, going_to, of_one
from amp_migrate.placement.unscaling.moving import Across
from amp_migrate.placement.unscaling.one_of_several import beside_native
from amp_migrate.placement.unscaling.pending import behind_backward
from amp_migrate.placement.unscaling.rehearsal import (
    Reading,
    cleared,
    cleared_optimizer,
    only_read,
    place,
    places,
)
from amp_migrate.placement.unscaling.through import unscale_through
from amp_migrate.placement.unscaling.unscale import Unscale, served
from amp_migrate.placement.windows.course import Course
from amp_migrate.placement.windows.skipped import accumulates, leaves_out, refuse_kept
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Function
from amp_migrate.project.order import exclusive, inside, key
from amp_migrate.project.rounds import runs_before
from amp_migrate.training.steps import Backward, Step, boundary, is_one


def plan(unit: Unit, function: Function, *, moving: bool = True) -> list[Unscale]:
    """Return the `unscale_` calls that a function needs, in source order; `moving`: clips may move to the step."""
    if function in unit.clip_helpers:
        return []
    steps = unit.live_steps(function)
    course = Course(unit, function)
    through = {i.seen: i for i in course.indirect}
    groups: dict[tuple[ast.Call | None, str], list[Use]] = {}
    chosen: dict[tuple[ast.Call | None, str], Step | None] = {}
    tree = function.module.tree
    rehearsed: dict[ast.Expr, list[Use]] = {}
    read: dict[Reading, list[Use]] = {}
    for use in gradients.uses(unit, function, [*steps, *through]):
        reported = scaled_reads(unit, function, use, [*steps, *through])
        unit.scaled_reads |= reported
        if reported:
            continue
        zeroing = cleared(unit, function, use)
        if zeroing is not None:
            rehearsed.setdefault(zeroing, []).append(use)
            continue
        reading = only_read(unit, function, use)
        if reading is not None:
            read.setdefault(reading, []).append(use)
            continue
        behind = course.next_steps(use.node, steps) or course.next_steps(use.node, through)
        if not behind and (steps or through):
            behind = course.steps_behind_backwards(use.statement, use.node, [*steps, *through])
            if not behind:
                continue
        if behind and _waits_unscaled(unit, course, use, behind):
            continue
        for step, text in _targets(unit, function, use, behind):
            mark = (step.call if step else None, text)
            groups.setdefault(mark, []).append(use)
            chosen[mark] = step
    result: list[Unscale] = []
    for mark, all_found in groups.items():
        for before, found in served(tree, all_found):
            step = chosen[mark]
            if step in through and not _outside(course, step, found):
                own = unscale_through(unit, course, through[step], mark[1], before, found)
                result.append(own)
            else:
                result += _unscales(unit, course, step, mark[1], before, found, moving)
    for zeroing, found in rehearsed.items():
        before = place(function, found, zeroing)
        optimizer = cleared_optimizer(function, zeroing)
        result.append(Unscale(function, before, optimizer, cleared=zeroing))
    for reading, found in read.items():
        before, last = places(function, found, reading)
        result.append(Unscale(function, before, reading.optimizer, cleared=last))
    for unscale in result:
        if not unscale.loop and unscale.inside is None:
            unscale.optimizer = reached(unit, function, unscale.optimizer, unscale.before)
    return sorted(result, key=lambda u: key(u.before))


def _targets(
    unit: Unit, function: Function, use: Use, later: list[Step]
) -> list[tuple[Step | None, str]]:
    """Return the step that follows a use with the text of its optimizer; several where that is not clear."""
    segment = function.module.tree.segment
    if use.optimizer is not None:
        named = [s for s in later if s.text == segment(use.optimizer)]
        step = (named or later or [None])[0]  # type: ignore[list-item]
        own = named or isinstance(use.optimizer, ast.Subscript)
        if step is None or own or goes_to_its_own(unit, use, step):
            return [(step, segment(use.optimizer))]
        return [(step, step.text)]
    if later:
        beside = _beside(function.module.tree, later)
        own = of_one(unit, function, use.node, later)
        return [(s, s.text) for s in (beside if set(own) <= set(beside) else own)]
    written = {
        segment(o): None for b in unit.backwards_of(function) for o in b.optimizers if is_place(o)
    }
    if not written:
        raise Cannot(
            "AMP907",
            *function.at(use.node),
            "gradients are read here, and it is not known which optimizer they belong to, so they cannot be unscaled",
            "read them in the function that steps the optimizer, before the step, then run again",
        )
    return [(None, text) for text in written]


def _beside(tree: Tree, later: list[Step]) -> list[Step]:
    """Return the first of some steps with those of other optimizers in its block."""
    found: dict[str, Step] = {}
    for step in later:
        if tree.block(step.anchor) is tree.block(later[0].anchor):
            found.setdefault(step.text, step)
    return list(found.values())


def _unscales(
    unit: Unit,
    course: Course,
    step: Step | None,
    text: str,
    first: ast.stmt,
    found: list[Use],
    moving: bool,
) -> list[Unscale]:
    """Return where gradients are unscaled for some reads; clips that do not move to the step stay on scaled ones."""
    unscale: Unscale | Cannot
    try:
        unscale = _unscale(unit, course, step, text, first, found)
        if moving or not unscale.accumulates:
            return [unscale]
    except Cannot as refusal:
        unscale = refusal
    outside = [] if step is None else _outside(course, step, found)
    clips = limited(unit, course.function, outside)
    if step is None or not clips or not _accumulates(unit, course, step):
        if isinstance(unscale, Cannot):
            raise unscale
        return [unscale]
    unit.scaled_clips |= clips
    rest = [use for use in found if use not in outside]
    return [
        inner
        for before, own in (served(step.tree, rest) if rest else ())
        for inner in _unscales(unit, course, step, text, before, own, moving)
    ]


def _accumulates(unit: Unit, course: Course, step: Step) -> bool:
    limit = _limit(course, step)
    return limit is not None and accumulates(unit, course.function, step.anchor, limit)


def _unscale(
    unit: Unit, course: Course, step: Step | None, text: str, first: ast.stmt, found: list[Use]
) -> Unscale:
    function = course.function
    tree = function.module.tree
    taking = (
        [] if step is None else [s.call for s in unit.steps_of(function) if s.text == step.text]
    )
    behind = behind_backward(unit, course, found, taking)
    if step is None or behind is not None:
        return Unscale(function, first, text, behind=behind, reads=[] if step else found)
    first = _between(unit, step, first, found)
    first = step.anchor if _of_any_turn(unit, step, first, found) else first
    result = Unscale(function, first, text, asked=beside_native(unit, step, first))
    anchor = step.anchor
    own = text == tree.segment(step.optimizer)
    before = first is anchor or not inside(tree, first, anchor)
    if own and isinstance(anchor, ast.For) and before:
        taken = going_to(tree, first, step.optimizer)
        if defs(anchor.target) & uses(step.optimizer) and taken is None:
            result.loop = f"{tree.segment(anchor.target)} in {tree.segment(anchor.iter)}"
    steps = course.alike(step)
    elsewhere = course.following(found[0].node, steps)
    if any(s.call is not step.call and not exclusive(tree, s.call, step.call) for s in elsewhere):
        return _before_any(course, result, elsewhere)
    limit = _limit(course, step)
    outside = _outside(course, step, found)
    if limit is None or not outside:
        refuse_kept(unit, step, first, None)
        reads = [u.statement for u in found]
        skips = leaves_out(step, limit, reads, steps) if limit is not None else None
        if skips is not None:
            refuse_kept(unit, step, first, skips, by_norm=True)
            result.outside = skips
        return result
    given = course.given_away(step)
    away = [s for s in course.next_steps(outside[0].node, [*steps, *given]) if s in given]
    result = Across(unit, step, limit, outside).unscale(result, found, elsewhere, away)
    if not result.moved:
        written = {name for use in outside for name in defs(use.statement)}
        refuse_kept(unit, step, first, limit, by_norm=bool(written & uses(question(limit))))
    return result


def _of_any_turn(unit: Unit, step: Step, first: ast.stmt, found: list[Use]) -> bool:
    """Tell whether each turn of a loop that steps optimizers one by one reads gradients that may be another one's.

    They are read by nothing that the loop binds, and all are unscaled in front of it.
    """
    loop, tree = step.anchor, step.tree
    if not isinstance(loop, ast.For) or first is loop or not inside(tree, first, loop):
        return False
    if any(inside(tree, b.node, loop) for b in unit.backwards_of(step.function)):
        return False
    bound = {name for part in ast.walk(loop) if isinstance(part, ast.stmt) for name in defs(part)}
    return not any((bound | defs(loop.target)) & uses(use.node) for use in found)


def _limit(course: Course, step: Step) -> Fork | None:
    """Return the test that lets a step wait for several micro-batches, or leaves it out."""
    backward = course.trained_before(step)
    if backward is None:
        return None
    return boundary(step, backward, course.alike(step))


def _waits_unscaled(unit: Unit, course: Course, use: Use, behind: list[Step]) -> bool:
    """Tell whether gradients are read before their step waits for more, where AMP is off and none are scaled."""
    waiting = all(_outside(course, step, [use]) for step in behind)
    return waiting and runs_unscaled(unit, course.function, use.node)


def _outside(course: Course, step: Step, found: list[Use]) -> list[Use]:
    """Return the reads that do not stand within the test around their step, nor under one of the same truth."""
    limit = _limit(course, step)
    outside = [u for u in found if limit is not None and not inside(step.tree, u.statement, limit)]
    alike = course.alike(step) if outside else []
    calls = [_taken_at(s) for s in alike]
    return [u for u in outside if not course.always_comes(u.node, calls)]


def _taken_at(step: Step) -> ast.expr:
    """Return what a step is over with: itself, or where a loop over optimizers begins that steps each."""
    loop = step.anchor
    each = isinstance(loop, ast.For) and step.tree.statement(step.call) in loop.body
    return loop.iter if each and isinstance(loop, ast.For) else step.call


def _before_any(course: Course, result: Unscale, steps: list[Step]) -> Unscale:
    """Unscale before reads that one of several steps follows, none of which may leave the gradients to a backward."""
    way = course.kept(result.before, [step.call for step in steps])
    if way is not None:
        raise Cannot(
            "AMP908",
            *course.function.at(result.before),
            "gradients are read on micro-batches that do not step, and can be unscaled only once per step",
            f"read them straight before each {steps[0].text}.step(), then run again",
        )
    return result


def _between(unit: Unit, step: Step, first: ast.stmt, found: list[Use]) -> ast.stmt:
    """Return where to unscale gradients that are read between backward passes; `unscale_` runs once per step."""
    runs = partial(runs_before, unit.project, step.function)
    later: list[Backward] = []
    for backward in unit.live_backwards(step.function):
        if not runs(backward.node, step.call):
            continue
        feeds = [is_one(unit.project, step.module, o, step.optimizer) for o in backward.optimizers]
        if not feeds or any(feeds):
            later += [backward] if any(runs(u.node, backward.node) for u in found) else []
    if not later:
        return first
    place = place_before(unit, step, first, found, later)
    if place is None:
        read = next(u.node.lineno for u in found if runs(u.node, later[0].node))
        raise Cannot(
            "AMP907",
            step.module,
            later[0].node,
            f"gradients are read on line {read}, this backward adds to them before {step.text}.step(), and they can be "
            "unscaled only once per step",
            "read them after the last backward, then run again",
        )
    unit.unscaled |= set(later)
    return place
