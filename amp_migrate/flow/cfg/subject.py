"""The tests that a statement decides by: what it asks, or what the cases of a match stand for."""

from __future__ import annotations

import ast
from typing import TypeGuard

from amp_migrate.facts.paths import variables

_RUNS_CODE = ast.Call | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom


DECIDES = ast.If | ast.While | ast.IfExp | ast.Match
Fork = ast.If | ast.Match
"""A statement that goes one of two ways."""


def is_fork(node: ast.AST) -> TypeGuard[Fork]:
    """Tell whether a statement goes one of two ways by one test: an `if`, or a match whose first case alone compares."""
    if not isinstance(node, ast.Match):
        return isinstance(node, ast.If)
    others = node.cases[1:]
    tests = tests_of_cases(node)
    wild = all(isinstance(o.pattern, ast.MatchAs) and o.pattern.pattern is None for o in others)
    unguarded = all(case.guard is None for case in node.cases)
    return tests[0] is not None and unguarded and wild and len(others) < 2


def question(node: Fork) -> ast.expr:
    """Return what a fork asks: a comparison that nobody wrote where a case stands for it, but for that of a comparison with True."""
    if isinstance(node, ast.If):
        return node.test
    pattern, subject = node.cases[0].pattern, node.subject
    holds = isinstance(pattern, ast.MatchSingleton) and pattern.value is True
    return subject if holds and isinstance(subject, ast.Compare) else asked_by(node)[0]


def evaluated(node: Fork) -> ast.expr:
    """Return what a fork evaluates as it is written."""
    return node.test if isinstance(node, ast.If) else node.subject


def ways(node: Fork) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Return what runs where the answer is yes, and where it is no."""
    if isinstance(node, ast.If):
        return node.body, node.orelse
    return node.cases[0].body, [stmt for case in node.cases[1:] for stmt in case.body]


def asked_by(node: ast.If | ast.While | ast.IfExp | ast.Match) -> list[ast.expr]:
    """Return the tests that a statement or expression decides by: those that the cases of a match stand for."""
    if isinstance(node, ast.Match):
        return [test for test in tests_of_cases(node) if test is not None]
    return [node.test]


def tests_of_cases(node: ast.Match) -> list[ast.expr | None]:
    """Return for each case the comparison of the subject that its pattern makes; None where it is no comparison.

    `case "apex":` is `subject == "apex"`, `case None:` is `subject is None`, `case 1 | 2:` is a comparison with
    each. The subject is evaluated once, so that a case after one that binds a name of the subject, or whose
    guard runs code, compares with what may be a past value and has no test.
    """
    names = variables(node.subject)
    tests: list[ast.expr | None] = []
    current = True
    for case in node.cases:
        tests.append(_comparison(node.subject, case.pattern) if current else None)
        bound = {getattr(part, "name", None) for part in ast.walk(case.pattern)}
        bound |= {getattr(part, "rest", None) for part in ast.walk(case.pattern)}
        runs = case.guard is not None and any(
            isinstance(part, _RUNS_CODE) for part in ast.walk(case.guard)
        )
        current = current and not runs and not names & bound
    return tests


def _comparison(subject: ast.expr, pattern: ast.pattern) -> ast.expr | None:
    if isinstance(pattern, ast.MatchValue):
        return _compared(subject, ast.Eq(), pattern.value, pattern)
    if isinstance(pattern, ast.MatchSingleton):
        constant = ast.copy_location(ast.Constant(pattern.value), pattern)
        return _compared(subject, ast.Is(), constant, pattern)
    if isinstance(pattern, ast.MatchOr):
        parts = [_comparison(subject, part) for part in pattern.patterns]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            return ast.copy_location(ast.BoolOp(ast.Or(), known), pattern)
    return None


def _compared(subject: ast.expr, op: ast.cmpop, right: ast.expr, at: ast.pattern) -> ast.expr:
    return ast.copy_location(ast.Compare(subject, [op], [right]), at)
