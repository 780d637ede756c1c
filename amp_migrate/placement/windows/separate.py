"""Functions that each accumulate gradients of their own, while one GradScaler scales them all."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from amp_migrate.facts.paths import same
from amp_migrate.flow.cfg.subject import Fork, question
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import clearing
from amp_migrate.placement.reads.limited import limited
from amp_migrate.placement.steps.indirect import indirect
from amp_migrate.placement.unscaling.unscale import Unscale
from amp_migrate.placement.windows.counting import counts
from amp_migrate.placement.windows.skipped import accumulates
from amp_migrate.plan.cannot import Cannot, spoken
from amp_migrate.project import Function
from amp_migrate.project.order import inside, key, levels, loop_of
from amp_migrate.project.reach import calls_to
from amp_migrate.project.relatives import family
from amp_migrate.project.rounds import last_before
from amp_migrate.training.steps import Backward, Step, boundary, is_one


def refuse_separate_windows(unit: Unit) -> None:
    """Refuse updates in two functions of one loop that accumulate: each changes the scale of the other's gradients."""
    accumulating = [
        step
        for function in dict.fromkeys(step.function for step in unit.steps)
        if (step := _accumulated(unit, function)) is not None
    ]
    for first, second in itertools.combinations(accumulating, 2):
        differ = not _share_optimizer(unit, first, second)
        if _scaled_apart(unit, first.function, second.function):
            continue
        if differ and _share_a_loop(unit, first.function, second.function):
            later = max(first, second, key=lambda step: key(step.call))
            raise Cannot(
                "AMP905",
                *later.at,
                f"{spoken(first.function)} and {spoken(second.function)} accumulate gradients side by side, "
                "and the step of one would change the loss scale under the gradients of the other",
                "step both optimizers in one function, one behind the other, then run again",
            )


def refuse_waiting_beside(unit: Unit) -> None:
    """Refuse an optimizer that accumulates gradients over rounds in each of which another one steps."""
    for step in unit.live_steps():
        backwards = [b for b in unit.live_backwards(step.function) if _is_fed(unit, b, step)]
        if not backwards:
            continue
        limit = boundary(step, backwards[0].node)
        if limit is None or not _waits_for_rounds(unit, step, limit):
            continue
        for other in unit.live_steps(step.function):
            apart = not inside(step.tree, other.call, limit)
            if apart and _steps_each_round(unit, other, step, limit, backwards[0].node):
                raise Cannot(
                    "AMP905",
                    *step.at,
                    f"{step.text} accumulates gradients over rounds in each of which {other.text} steps, and that "
                    "would change the loss scale under them",
                    f"step and clear both optimizers under `if {ast.unparse(question(limit))}:`, or both in each round, "
                    "then run again",
                )


def _is_fed(unit: Unit, backward: Backward, step: Step) -> bool:
    project, module = unit.project, step.module
    return any(is_one(project, module, o, step.optimizer) for o in backward.optimizers)


def _waits_for_rounds(unit: Unit, step: Step, limit: Fork) -> bool:
    """Tell whether a test counts the rounds after which an optimizer steps, and is cleared in no other one."""
    clears = [
        node
        for node in step.function.own_nodes
        if isinstance(node, ast.Attribute)
        and node.attr == "zero_grad"
        and is_one(unit.project, step.module, node.value, step.optimizer)
    ]
    within = bool(clears) and all(inside(step.tree, node, limit) for node in clears)
    return within and counts(unit, step.function, question(limit))


def _steps_each_round(unit: Unit, other: Step, step: Step, limit: Fork, backward: ast.AST) -> bool:
    """Tell whether another optimizer steps in the rounds of a loop in which one waits."""
    if is_one(unit.project, step.module, other.optimizer, step.optimizer):
        return False
    loop = loop_of(step.tree, limit)
    together = loop is not None and loop is loop_of(step.tree, other.anchor)
    return together and boundary(other, backward) is None


def _scaled_apart(unit: Unit, first: Function, second: Function) -> bool:
    """Tell whether each of two methods has a GradScaler that its own class makes and keeps on its objects."""
    if first.cls is None or second.cls is None or second.cls in family(first.cls):
        return False
    return unit.home.is_attribute(first) and unit.home.is_attribute(second)


def left_scaled(unit: Unit, unscales: list[Unscale], *, native: bool) -> list[Unscale]:
    """Return where to unscale, but for clips beside a backward whose gradients a step elsewhere lets accumulate.

    These stay on scaled gradients, where they become `native`. Raises `Cannot` for other reads there.
    """
    found: list[Unscale] = []
    for unscale in unscales:
        function = unscale.function
        apart = not unit.steps_of(function) and not indirect(unit, function)
        steps = unit.live_steps() if apart else []
        step = next((step for step in steps if any(_waits(unit, step, function))), None)
        clips = limited(unit, function, unscale.reads) if step is not None and native else {}
        if step is None:
            found.append(unscale)
        elif clips:
            unit.scaled_clips |= clips
        else:
            raise Cannot(
                "AMP908",
                *function.at(unscale.before),
                f"gradients are read here on every micro-batch, {spoken(step.function)} does not step on each, and "
                "they can be unscaled only once per step",
                f"read them in {spoken(step.function)}, straight before {step.text}.step(), then run again",
            )
    return found


def _waits(unit: Unit, step: Step, function: Function) -> Iterator[bool]:
    """Yield whether each test around a step, or the calls of its function, counts the calls of another function."""
    places = [(step.function, step.call)]
    places += [(site.function, site.call) for site in unit.project.callers(step.function)]
    for holder, node in places:
        tree = holder.module.tree
        calls = calls_to(unit.project, holder, {function})
        for level in levels(tree, node):
            if isinstance(level, ast.If) and not any(inside(tree, call, level) for call in calls):
                yield accumulates(unit, holder, node, level)


def _share_optimizer(unit: Unit, a: Step, b: Step) -> bool:
    """Tell whether two steps are of one optimizer; where its values are unknown, of one name."""
    values = unit.project.values
    ours, theirs = values.group(a.module, a.optimizer), values.group(b.module, b.optimizer)
    return ours == theirs and (ours is not None or same(a.optimizer, b.optimizer))


def _accumulated(unit: Unit, function: Function) -> Step | None:
    """Return a step of a function that waits for the backward passes of several calls."""
    backwards = [b.node for b in unit.live_backwards(function)]
    for step in unit.live_steps(function):
        last = last_before(unit.project, function, backwards, step.call)
        if not last or loop_of(step.tree, last[-1]) is not None:
            continue
        window = boundary(step, last[-1])
        if window is not None and not _zeroes_outside(unit, function, window):
            return step
    return None


def _zeroes_outside(unit: Unit, function: Function, window: Fork) -> bool:
    """Tell whether gradients are cleared in every call, so that none wait for the next."""
    tree, clears = function.module.tree, clearing(unit.project).nodes(function)
    return any(not inside(tree, node, window) for node in clears)


def _share_a_loop(unit: Unit, first: Function, second: Function) -> bool:
    ours = unit.project.callers(first)
    theirs = unit.project.callers(second)
    for a, b in itertools.product(ours, theirs):
        if a.function is b.function:
            tree = a.function.module.tree
            loop = loop_of(tree, a.call)
            if loop is None or loop is loop_of(tree, b.call):
                return True
    return False
