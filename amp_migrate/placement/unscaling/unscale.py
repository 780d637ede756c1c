"""What one call of `unscale_` comes before, and what moves with it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import NamedTuple

from amp_migrate.facts.tree import Tree
from amp_migrate.flow.cfg.subject import Fork
from amp_migrate.placement.reads.gradients import Use
from amp_migrate.project import Function
from amp_migrate.project.order import inside, levels
from amp_migrate.training.steps import Step, children_of, holds_backward, parent_statement


class Inside(NamedTuple):
    """A statement of the helper that clips, before which it unscales the gradients of its own optimizer."""

    function: Function
    before: ast.stmt
    optimizer: str


class Asked(NamedTuple):
    """A test with how it comes out."""

    test: ast.expr
    holds: bool


@dataclass(eq=False, slots=True)
class Unscale:
    """One `unscale_`: before which statement, of which optimizer (`loop` visits several).

    `moved` statements go with it to `before`, among them `reports` of the norm and those that clip nothing but `read`. The names `pending` that
    they assign are None on the other micro-batches, so that the statements `guarded` have to ask. `decided` is the
    step of a helper that the norm given to it may leave out. `cleared` is the ``zero_grad()`` or the read that ends
    what is no training, so that no step follows, but `update()`. `inside` is where it is written instead, where the helper that clips is one
    of several that the call may reach. `behind` is the end of the branch with the backward, where it is written
    instead as the reads run without one, too. `through` is the call of a helper that steps, in the function that unscales. `reads` are those of a function that takes no step.
    `asked` is the test under which its step is taken, where one of a GradScaler of the source is taken else.
    """

    function: Function
    before: ast.stmt
    optimizer: str
    loop: str = ""
    moved: list[ast.stmt] = field(default_factory=list)
    reports: list[ast.stmt] = field(default_factory=list)
    read: list[ast.stmt] = field(default_factory=list)
    accumulates: bool = False
    outside: Fork | None = None
    limit: Fork | None = None
    pending: tuple[str, ...] = ()
    guarded: list[ast.stmt] = field(default_factory=list)
    decided: Step | None = None
    cleared: ast.stmt | None = None
    inside: Inside | None = None
    behind: ast.stmt | None = None
    through: Step | None = None
    reads: list[Use] = field(default_factory=list)
    asked: Asked | None = None


def served(tree: Tree, found: list[Use]) -> list[tuple[ast.stmt, list[Use]]]:
    """Divide reads into those that one `unscale_` serves, with the statement that it precedes.

    Alternatives that run a backward of their own need one each.
    """
    children = children_of(tree, [use.statement for use in found])
    first = children[0]
    if not holds_backward(first) or first in [use.statement for use in found]:
        return [(first, found)]
    inner = [use for use in found if inside(tree, use.statement, first)]
    if len(inner) < len(found):
        parts = served(tree, inner)
        return [
            (stmt, uses + found[len(inner) :]) if i == 0 else (stmt, uses)
            for i, (stmt, uses) in enumerate(parts)
        ]
    groups: dict[int, list[Use]] = {}
    for use in found:
        branch = next(s for s in levels(tree, use.statement) if parent_statement(tree, s) is first)
        groups.setdefault(id(tree.block(branch)), []).append(use)
    return [part for group in groups.values() for part in served(tree, group)]
