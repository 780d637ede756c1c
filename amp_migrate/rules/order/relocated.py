"""Statements move to the accumulation boundary, each under the tests that it leaves."""

from __future__ import annotations

import ast
from itertools import groupby

from amp_migrate.facts.paths import calls_anything
from amp_migrate.facts.tree import Tree
from amp_migrate.flow.condition import Condition, negate, speller
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Drop, Edit, Insert, Move
from amp_migrate.project import Module, Project
from amp_migrate.project.order import in_branch, key, tests_between
from amp_migrate.project.rounds import rebound

Held = tuple[tuple[ast.If, ...], ast.stmt]


def relocated(
    project: Project, module: Module, stmts: list[ast.stmt], anchor: ast.stmt
) -> list[Edit]:
    """Return the edits that put statements before `anchor`; what stood under a test stands under it there.

    Raises `Cannot` where a test may have another answer there.
    """
    tree = module.tree
    held: list[Held] = []
    for stmt in sorted(stmts, key=key):
        tests = tuple(reversed(list(tests_between(tree, stmt, anchor))))
        for test in tests:
            refuse_changing(project, module, test, anchor)
        held.append((tests, stmt))
    place = tree.span(anchor)
    if not any(tests for tests, _ in held):
        return [Move(tree.span(stmt), place, after=False) for _, stmt in held]
    return [
        Insert(place, _text(tree, held), after=False),
        *(Drop(tree.span(stmt)) for _, stmt in held),
    ]


def _text(tree: Tree, held: list[Held]) -> str:
    parts: list[str] = []
    for test, group in groupby(held, key=lambda one: one[0][0] if one[0] else None):
        if test is None:
            parts += [tree.segment(stmt) for _, stmt in group]
            continue
        inner = [(tests[1:], stmt) for tests, stmt in group]
        positive = [one for one in inner if in_branch(tree, one[1], test.body)]
        negative = [one for one in inner if one not in positive]
        condition = speller(tree)(test.test)
        if positive:
            parts.append(f"if {condition}:\n{_indented(_text(tree, positive))}")
        if negative:
            opposite = "else" if positive else f"if {negate(Condition(None, condition)).text}"
            parts.append(f"{opposite}:\n{_indented(_text(tree, negative))}")
    return "\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else line for line in text.split("\n"))


def condition(tree: Tree, test: ast.If, stmt: ast.stmt) -> str:
    """Return the condition under which an `if` runs a statement of one of its branches."""
    text = speller(tree)(test.test)
    return text if in_branch(tree, stmt, test.body) else negate(Condition(None, text)).text


def refuse_changing(project: Project, module: Module, test: ast.If, anchor: ast.stmt) -> None:
    """Raise `Cannot` where a test may have another answer before `anchor`."""
    function = project.function_of(module, test)
    if calls_anything(test.test) or rebound(project, function, test.test, test.test, anchor):
        raise Cannot(
            "AMP208",
            module,
            test,
            "gradients are clipped on every micro-batch, under a test that may have another answer at the step",
            "move the clip to where the optimizer steps, then run again",
        )
