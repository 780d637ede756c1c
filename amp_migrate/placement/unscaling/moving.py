"""Reads of gradients on every micro-batch, which move to the step: what they give is used there alone, or asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from amp_migrate.facts.paths import defs, uses
from amp_migrate.facts.tree import Tree
from amp_migrate.flow.cfg.subject import Fork, question
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.gradients import Use
from amp_migrate.placement.reads.reported import (
    does_more,
    helpers_tell_more,
    tells,
    tells_more,
    unseen_reader,
)
from amp_migrate.placement.unscaling.unscale import Unscale
from amp_migrate.placement.windows.certain import may_be_untrained
from amp_migrate.placement.windows.skipped import accumulates, leaves_out
from amp_migrate.plan.cannot import Cannot, place_of
from amp_migrate.project.order import Loop, in_branch, inside, key, levels, position, tests_between
from amp_migrate.training.steps import (
    Step,
    children_of,
    holds_backward,
    outermost_anchor,
    waiting,
)

_OTHER = (
    "gradients are read on every micro-batch by code that does other things too, and can be unscaled only "
    "once per step"
)
_OUT_OF_SIGHT = "is given the network on micro-batches that do not step, and may read gradients, as its code is not in the files given"
_GIVE = "give amp-migrate the file that defines it as well, or run this inside `if {test}:`, then run again"
_MOVE = "read them inside `if {test}:` and leave the rest where it is, then run again"
_UNTRAINED = (
    "what is found in gradients is reported or collected here where no backward ran, too, and they can be "
    "unscaled only behind one"
)
_REPORT = "report them inside `if {test}:` alone, or run the backward there too, then run again"
_SEVERAL = (
    "gradients are clipped on every micro-batch, and can be unscaled only once per step, which is taken in "
    "several places"
)
_NORM = "gradients are clipped on every micro-batch, and the norm is used where no step is taken"
_EVERY = "gradients are clipped on every micro-batch, and can be unscaled only once per step"
_BEFORE = "clip straight before each step, and before `{}` where it steps, then run again"
_BRANCH = "gradients are clipped on every micro-batch, in one branch of an `if`, and can be unscaled only once per step"
_TEST = "move the clip with its test to where the optimizer steps, then run again"
_INTO = "move the clip and what uses its norm into `if {test}:`, then run again"


@dataclass(frozen=True, eq=False, slots=True)
class Across:
    """Gradients that are read `outside` of the `if` by which their step waits for several micro-batches."""

    unit: Unit
    step: Step
    limit: Fork
    outside: list[Use]

    def unscale(
        self, result: Unscale, found: list[Use], steps: list[Step], given: list[Step]
    ) -> Unscale:
        """Move the reads in, or unscale on every pass.

        `steps` are all that may take those gradients, which the reads must come before wherever they move to, and
        `given` those of code out of sight, by which the optimizer may be stepped as well.
        """
        unit, step, limit, tree = self.unit, self.step, self.limit, self.step.tree
        tops = list(dict.fromkeys(_top(tree, use.statement, limit) for use in self.outside))
        written = {name for top in tops for name in defs(top)}
        result.accumulates = self._is_in_a_window() or accumulates(
            unit, step.function, step.anchor, limit
        )
        there = waiting(step, limit)
        elsewhere = [away for away in given if not in_branch(tree, away.call, there)]
        more = [top for top in tops if does_more(unit, top) or _is_around(top, self.outside)]
        told = more or any(tells(unit, top) for top in tops)
        stays = told or elsewhere
        if written & uses(question(limit)) or (stays and not result.accumulates):
            result.outside = limit
            return result
        if elsewhere:
            call = elsewhere[0].call
            called = ast.unparse(call.func)
            message = f"{_EVERY}, and `{called}` on line {call.lineno}, which is given {step.text}, may step there"
            raise self._cannot(self.outside[0].node, message, _BEFORE.format(called))
        if more:
            raise self._unseen(more[0]) or self._cannot(more[0], _OTHER, _MOVE)
        between = tree.block(limit)[position(tree, tops[-1]) + 1 : position(tree, limit)]
        if result.accumulates:
            result.reports = [stmt for stmt in between if _calls_using(stmt, written) == [stmt]]
            tops += result.reports
        after = [*between, *_behind(tree, limit)]
        later = [stmt for stmt in after if stmt not in tops and written & uses(stmt)]
        if later and not result.accumulates:
            result.outside = limit
            return result
        if later:
            self._await_step(result, written, later)
        self._refuse_losing([*(tops if told else result.reports), *result.guarded])
        inner = [u.statement for u in found if inside(tree, u.statement, limit)]
        result.moved = tops
        clips = [use.node for use in self.outside if use.clips]
        result.read = [top for top in tops if not any(inside(tree, node, top) for node in clips)]
        if given:  # a way on which one of them steps leaves the step out
            result.outside = leaves_out(step, limit, [use.statement for use in self.outside], steps)
        steps = [*steps, *given]
        result.before = min([*inner, outermost_anchor(step, steps), self._ahead(steps)], key=key)
        for top in tops if result.accumulates else ():
            self._refuse_branch(top, result.before)
        return result

    def _refuse_branch(self, top: ast.stmt, anchor: ast.stmt) -> None:
        """Raise `Cannot` where a read would leave tests that it cannot take along: what it sets is asked for behind them."""
        between = tests_between(self.step.tree, top, anchor)
        tests = [test for test in between if test not in self.unit.folded]
        if len(tests) > 1 or (tests and defs(top)):
            raise self._cannot(top, _BRANCH, _TEST)

    def _unseen(self, top: ast.stmt) -> Cannot | None:
        """Return why a program is left where all that may read gradients in a statement is code out of sight."""
        function, tree = self.step.function, self.step.tree
        uses = [use for use in self.outside if inside(tree, use.node, top)]
        found = [unseen_reader(self.unit, function, use) for use in uses]
        if not found or found[0] is None or not all(found):
            return None
        where, node = found[0]
        called = where.module.tree.segment(node.func if isinstance(node, ast.Call) else node)
        message = f"`{called}` ({place_of(where.module, node)}) {_OUT_OF_SIGHT}"
        return self._cannot(top, message, _GIVE)

    def _is_in_a_window(self) -> bool:
        """Tell whether gradients are read in a loop over micro-batches behind which the step stands."""
        tree, call = self.step.tree, self.step.call
        return any(
            isinstance(level, Loop) and holds_backward(level) and not inside(tree, call, level)
            for use in self.outside
            for level in levels(tree, use.statement)
        )

    def _refuse_losing(self, telling: list[ast.stmt]) -> None:
        """Raise `Cannot` where what is reported of gradients runs less often than a backward, or tells of more than them."""
        for use in self.outside if telling else ():
            if may_be_untrained(self.unit, self.step.function, use.node):
                raise self._cannot(use.node, _UNTRAINED, _REPORT)
        read = {use.node for use in self.outside}
        norms = {name for use in self.outside for name in defs(use.statement)}
        for stmt in telling:
            own = tells_more(self.step.module, stmt, read, norms)
            if own or helpers_tell_more(self.unit, stmt):
                raise self._cannot(stmt, _OTHER, _MOVE)

    def _ahead(self, steps: list[Step]) -> ast.stmt:
        """Return the statement within the `if` that steps which holds the first of all steps, whichever way its tests go."""
        step = self.step
        anchors = [step.anchor, *(other.anchor for other in steps)]
        ahead = children_of(step.tree, anchors)[0]
        if not inside(step.tree, ahead, self.limit) or ahead is self.limit:
            raise self._cannot(
                self.outside[0].node,
                _SEVERAL,
                f"clip straight before each {step.text}.step(), then run again",
            )
        return ahead

    def _await_step(self, result: Unscale, written: set[str], later: list[ast.stmt]) -> None:
        """Let what uses the norm of a moved clip on every micro-batch ask whether there is one."""
        guarded = [s for stmt in later for s in _calls_using(stmt, written)]
        used = {name for stmt in guarded for name in uses(stmt) & written}
        if (
            any(written & uses(stmt) for stmt in later if not _calls_using(stmt, written))
            or not used
        ):
            raise self._cannot(self.outside[0].node, _NORM, _INTO)
        result.limit = self.limit
        result.pending = tuple(sorted(used))
        result.guarded = guarded

    def _cannot(self, reading: ast.AST, message: str, advice: str) -> Cannot:
        advice = advice.replace("{test}", ast.unparse(question(self.limit)))
        return Cannot("AMP908", self.step.module, reading, message, advice)


def _behind(tree: Tree, limit: Fork) -> Iterator[ast.stmt]:
    """Yield the statements behind one in its block, then those behind the blocks around it."""
    for level in levels(tree, limit):
        yield from tree.block(level)[position(tree, level) + 1 :]


def _is_around(stmt: ast.stmt, uses_of: list[Use]) -> bool:
    """Tell whether the context of a block reads gradients, and the block holds other code."""
    if not isinstance(stmt, ast.With | ast.AsyncWith):
        return False
    heads = {node for item in stmt.items for node in ast.walk(item)}
    return any(use.node in heads for use in uses_of) and not all(
        isinstance(inner, ast.Pass) for inner in stmt.body
    )


def _calls_using(stmt: ast.stmt, names: set[str]) -> list[ast.stmt]:
    """Return the calls in a statement that use some names; none where something else uses them too."""
    if isinstance(stmt, ast.Expr):
        used = isinstance(stmt.value, ast.Call) and names & uses(stmt)
        return [stmt] if used else []
    if not isinstance(stmt, ast.If | ast.With):
        return []
    if isinstance(stmt, ast.If):
        heads: list[ast.expr] = [stmt.test]
        body = [*stmt.body, *stmt.orelse]
    else:
        heads, body = [item.context_expr for item in stmt.items], stmt.body
    if any(names & uses(head) for head in heads):
        return []
    inner = [_calls_using(s, names) for s in body if names & uses(s)]
    return [s for found in inner for s in found] if all(inner) else []


def _top(tree: Tree, stmt: ast.stmt, limit: Fork) -> ast.stmt:
    """Return the statement to move for a read: what holds it beside the `if`, as far as it runs no backward."""
    block = tree.block(limit)
    top = stmt
    for level in levels(tree, stmt):
        if holds_backward(level):
            return top
        top = level
        if tree.block(level) is block:
            return top
    return stmt
