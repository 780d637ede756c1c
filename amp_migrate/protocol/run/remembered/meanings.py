"""What a variable or a parameter says of the expression that it was given, and that of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from amp_migrate.facts.below import every
from amp_migrate.flow.assumption import NOTHING, Assumption, Known, Truth
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.flow.terms import Aspect, Operand, Term, term, term_of_name
from amp_migrate.project import Function
from amp_migrate.protocol.calls.standing import is_test, standing_of
from amp_migrate.protocol.code.program import Program

_MEANS = "means("


class Meanings:
    """Knows the tests that names stand for: ``ready = (i + 1) % k == 0``, or a call that gives such a test.

    What is remembered of a variable goes with the first operand that changes, as everything that is known of it does.
    """

    def __init__(self, program: Program) -> None:
        self._standing = standing_of(program)

    def stored(self, point: Point, known: Assumption) -> Assumption:
        """Return what is known behind a point, with the test that a name stands for there."""
        node = point.node
        if point.kind is not Kind.STORE or not isinstance(node, ast.Name) or point.value is None:
            return known
        value = self._standing.answers.spelt(point.value)
        operands = lasting(value)
        own = Operand(node.id, Aspect.BINDING)
        if not operands or own in operands:
            return known
        means = Term(f"{_MEANS}{node.id}, {ast.unparse(value)})", operands | {own})
        return self.told(known.with_fact(means, Known(True))) or known

    def told(self, known: Assumption | None) -> Assumption | None:
        """Return what is known, with what names say of their tests and these of them; None where they disagree."""
        before: Assumption | None = None
        while known is not None and known is not before:
            before = known
            for fact in before.facts:
                if fact.term.text.startswith(_MEANS):
                    known = _by_both(fact.term, known)
                    if known is None:
                        break
        return known

    def into(
        self, call: ast.Call, callee: Function, known: Assumption
    ) -> Iterator[tuple[Term, Truth]]:
        """Yield the parameters that a call gives tests for, with how those come out."""
        for name, test in self._given(call, callee):
            truth = evaluate(test, known)
            if truth is not None:
                yield name, Truth(truth)

    def back(
        self, call: ast.Call, callee: Function, learnt: Assumption, known: Assumption
    ) -> Assumption | None:
        """Return what was known at a call, with what a function learnt of the tests given; None where they disagree."""
        found: Assumption | None = known
        for name, test in self._given(call, callee):
            stated = learnt.get(name)
            if stated is not None and found is not None:
                found = self.told(refine(found, test, stated.truth))
        return found

    def _given(self, call: ast.Call, callee: Function) -> Iterator[tuple[Term, ast.expr]]:
        for name, test in self._standing.given(call, callee):
            if lasting(test):
                yield term_of_name(name), test


@lru_cache(maxsize=1 << 14)
def lasting(test: ast.expr) -> frozenset[Operand]:
    """Return the operands of a test that comes out the same as long as they do; nothing of any other expression."""
    if not is_test(test):
        return frozenset()
    ways = ((truth, refine(NOTHING, test, truth)) for truth in (True, False))
    if not any(known is not None and evaluate(test, known) is truth for truth, known in ways):
        return frozenset()
    parts = [part for part in every(test) if isinstance(part, ast.expr)]
    stated = (refine(NOTHING, part, truth) for part in parts for truth in (True, False))
    return frozenset(o for known in stated if known for f in known.facts for o in f.term.operands)


def _by_both(means: Term, known: Assumption) -> Assumption | None:
    """Return what is known with what a name says of its test, or that of it."""
    named, test = _read(means.text)
    name = term(named)
    stated, truth = None if name is None else known.get(name), evaluate(test, known)
    if stated is not None:
        return refine(known, test, stated.truth)
    return known if truth is None or name is None else known.with_fact(name, Truth(truth))


@lru_cache(maxsize=1 << 14)
def _read(text: str) -> tuple[ast.expr, ast.expr]:
    """Return the name and the test of a term, by whatever names they go where it has been handed on."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    return call.args[0], call.args[1]
