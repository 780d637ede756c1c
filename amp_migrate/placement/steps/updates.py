"""Where `scaler.update()` goes behind the steps of one function."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from amp_migrate.facts.paths import same
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Project
from amp_migrate.project.order import Loop, in_branch, inside, key, levels, position
from amp_migrate.project.rounds import runs_before
from amp_migrate.training.steps import (
    Backward,
    Step,
    children_of,
    cleared_by,
    is_one,
    parent_statement,
    visited_around,
)


def updates(project: Project, steps: list[Step], backwards: list[Backward]) -> list[ast.stmt]:
    """Return the statements after which `scaler.update()` goes, for the steps of one function.

    Raises `Cannot` where several optimizers that one backward feeds step under tests of their own.
    """
    return _Updates(project, steps, backwards).after(s.anchor for s in steps) if steps else []


def halved_once(
    project: Project, backwards: list[Backward], places: list[ast.stmt]
) -> list[Backward]:
    """Return the backward passes of loops over optimizers in whose rounds no update stands: Apex moved its scale behind each."""
    around = ((b, visited_around(project, b)) for b in backwards if b.scaled)
    return [
        backward
        for backward, loop in around
        if loop is not None
        and not any(inside(backward.module.tree, place, loop) for place in set(places) - {loop})
    ]


@dataclass(frozen=True, eq=False, slots=True)
class _Updates:
    project: Project
    steps: list[Step]
    backwards: list[Backward]

    def after(self, anchors: Iterable[ast.stmt]) -> list[ast.stmt]:
        """Return the places of the updates for the steps of some statements."""
        ordered = sorted(set(anchors), key=key)
        if len(ordered) == 1:
            return ordered
        children = children_of(self.steps[0].tree, ordered)
        if len(children) == 1:
            return self._inside_one(children[0], ordered)
        if any(isinstance(c, Loop) and c not in ordered for c in children):
            return self._each(children, ordered)
        if any(c in ordered for c in children):
            return self._after_repeats(children, ordered)
        return self._conditional(children, ordered)

    def _of(self, statement: ast.stmt) -> list[Step]:
        return [s for s in self.steps if inside(s.tree, s.anchor, statement)]

    def _after_repeats(self, children: list[ast.stmt], anchors: list[ast.stmt]) -> list[ast.stmt]:
        """Return the last statement, and a place before each next step of an optimizer already stepped."""
        places: list[ast.stmt] = []
        group: list[ast.stmt] = []
        for child in children:
            stepped = [step for earlier in group for step in self._of(earlier)]
            own = self._of(child)
            if any(self._is_next(s, b, group[-1], child) for s in own for b in stepped):
                places += self._group_end(group, anchors)
                group = []
            group.append(child)
        return [*places, *self._group_end(group, anchors)]

    def _is_next(self, step: Step, earlier: Step, last: ast.stmt, child: ast.stmt) -> bool:
        """Tell whether a step ends another iteration than an earlier one: of one optimizer, or of one variable that was cleared since."""
        a, b = step.optimizer, earlier.optimizer
        between = step.tree.block(child)[position(step.tree, last) : position(step.tree, child)]
        cleared = (held for stmt in between if (held := cleared_by(stmt)) is not None)
        anew = same(a, b) and any(same(held, a) for held in cleared)
        return self._is_one(a, b) or (anew and self._phases([last, child]))

    def _is_one(self, a: ast.expr, b: ast.expr) -> bool:
        return is_one(self.project, self.steps[0].module, a, b)

    def _group_end(self, group: list[ast.stmt], anchors: list[ast.stmt]) -> list[ast.stmt]:
        return self._each(group, anchors) if len(group) == 1 else [group[-1]]

    def _each(self, children: list[ast.stmt], anchors: list[ast.stmt]) -> list[ast.stmt]:
        """Return the places of the updates of each child by itself."""
        tree = self.steps[0].tree
        return [
            place
            for child in children
            for place in self.after(a for a in anchors if inside(tree, a, child))
        ]

    def _conditional(self, children: list[ast.stmt], anchors: list[ast.stmt]) -> list[ast.stmt]:
        """Place updates where every step stands under a condition of its own."""
        tree, last = self.steps[0].tree, children[-1]
        inner = [a for a in anchors if inside(tree, a, last)]
        if isinstance(last, ast.If) and all(in_branch(tree, a, last.body) for a in inner):
            if all(isinstance(c, ast.If) and same(c.test, last.test) for c in children):
                return self.after(inner)
        if self._phases(children):
            return self._each(children, anchors)
        step = self._of(last)[0]
        raise Cannot(
            "AMP905",
            *step.at,
            "several optimizers step under different tests after a backward that they share",
            "put their steps under one test, then run again",
        )

    def _phases(self, children: list[ast.stmt]) -> bool:
        """Tell whether each later optimizer is fed only by backward passes after the earlier steps."""
        return not any(
            self._feeds(backward, later)
            and runs_before(self.project, later.function, backward.node, earlier.call)
            for one, other in itertools.pairwise(children)
            for earlier in self._of(one)
            for later in self._of(other)
            for backward in self.backwards
        )

    def _feeds(self, backward: Backward, step: Step) -> bool:
        """Tell whether a backward may give gradients to the optimizer of a step."""
        unknown = isinstance(step.optimizer, ast.Call) or not backward.optimizers
        return unknown or any(self._is_one(o, step.optimizer) for o in backward.optimizers)

    def _inside_one(self, child: ast.stmt, anchors: list[ast.stmt]) -> list[ast.stmt]:
        """Place updates where all anchors are one statement, or stand in different branches of it."""
        if child in anchors:
            return [child]
        tree = self.steps[0].tree
        groups: dict[int, list[ast.stmt]] = {}
        for anchor in anchors:
            branch = next(s for s in levels(tree, anchor) if parent_statement(tree, s) is child)
            groups.setdefault(id(tree.block(branch)), []).append(anchor)
        return [place for group in groups.values() for place in self.after(group)]
