"""Truth under an assumption, and what a branch adds."""

from __future__ import annotations

import ast
import copy
import pickle

import pytest

from amp_migrate.flow import NOTHING, Known, Truth, assume, evaluate, refine, value_of


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("stated", "text", "truth"),
    [
        ({}, "1", True),
        ({}, "'' or None", False),
        ({}, "x or 1", True),
        ({}, "x and 0", False),
        ({}, "x or 0", None),
        ({}, "x", None),
        ({}, "f() and False", False),
        ({}, "(1, 2)", True),
        ({}, "[]", False),
        ({}, "{**x}", None),
        ({}, "lambda: 0", True),
        ({}, "1 < 2 < 3", True),
        ({}, "1 < 2 < x", None),
        ({}, "2 < 1 < x", False),
        ({}, "1 + 2 == 3", True),
        ({}, "1 / 0", None),
        ({}, "None is None", True),
        ({}, "'a' in ('b', 'a')", True),
        ({}, "'a' not in 'cab'", False),
        ({"args.fp16": True}, "args.fp16", True),
        ({"args.fp16": True}, "not args.fp16", False),
        ({"args.fp16": True}, "bool(args.fp16)", True),
        ({"args.fp16": True}, "args.fp16 is None", False),
        ({"args.fp16": False}, "args.fp16 is None", None),
        ({"args.fp16": True}, "args.fp16 and args.apex", None),
        ({"args.fp16": True}, "y if args.fp16 else x", None),
        ({"args.fp16": True}, "1 if args.fp16 else x", True),
        ({}, "1 if x else 2", True),
        ({"amp is None": True}, "amp", False),
        ({"amp is None": True}, "amp is not None", False),
        ({"amp is None": False}, "amp is not None", True),
        ({"amp is None": False}, "amp", None),
        ({"amp is not None": False}, "amp is None", True),
        ({"level": "O1"}, "level == 'O1'", True),
        ({"level": "O1"}, "'O0' == level", False),
        ({"level": "O1"}, "level in ('O1', 'O2')", True),
        ({"level": "O1"}, "level in ('O2', x)", None),
        ({"level in ('O1', 'O2')": False}, "level == 'O2'", False),
        ({"level == 'O1'": True}, "level != 'O2'", True),
        ({"level != 'O1'": False}, "level", True),
        ({"i % 2 == 0": True}, "i % 2 == 1", False),
        ({"i % 2 == 0": False}, "i % 2 == 1", True),
        ({"i % 2 == 1": True}, "(i + 1) % 2 == 0", True),
        ({"(i + 1) % 2 != 0": True}, "i % 2 == 0", True),
        ({"i % 2": True}, "(i - 1) % 2 == 0", True),
        ({"i % 2 == 0": True}, "(i + k) % 2 == 0", None),
        ({"i % 3 == 0": False}, "i % 3 == 1", None),
        ({"level == 'O1'": False}, "level == 'O2'", None),
        ({"rank == 0": True}, "rank == -1", False),
        ({"rank == 1": True}, "rank is True", None),
        ({"rank in [-1, 0]": False}, "rank == -1", False),
        ({"rank": -1}, "rank >= 0", False),
        ({"(i + 1) % k == 0": True}, "(i + 1) % k != 0", False),
        ({"(i + 1) % k == 0": True}, "(i + 1) % k == 0 and fp16", None),
        ({"c['amp']": True}, "c['amp']", True),
        ({"c['amp']": True}, "c['apex']", None),
        ({"isinstance(m, D)": True}, "isinstance(m, D)", True),
        ({"a and b": True}, "b", True),
        ({"a or b": False}, "a", False),
        ({"a or b": False, "c": True}, "a or b or c", True),
        ({"not a": True}, "a", False),
        ({"amp >= 0": True}, "amp == -1", False),
        ({"amp >= 0": True}, "-1 != amp", True),
        ({"amp == -1": True}, "amp >= 0", False),
        ({"amp > 0": True}, "amp", True),
        ({"amp > 0": True}, "amp >= 0 and 0 < amp", True),
        ({"0 <= amp": True}, "amp < 0", False),
        ({"amp > 2": True}, "amp in (0, 1)", False),
        ({"amp >= 0": True, "amp <= 0": True}, "amp == 0", True),
        ({"amp > 2": True}, "1 < amp < 9", None),
        ({"amp > 0": True}, "amp == 1", None),
        ({"amp >= 0": True}, "amp", None),
        ({"amp >= 0": False}, "amp < 0", None),  # not a number
        ({"amp == 1": False}, "amp > 1", None),
        ({"amp": False}, "amp > 1", False),
        ({"amp": False}, "amp == 1", False),
        ({"amp": False}, "amp == 0", None),  # None
        ({"amp": True}, "amp == 0", False),
        ({"amp": True}, "amp > 0", None),
        ({"c.amp > 2": True}, "1 < c.amp", True),
        ({"c.amp > 2": True}, "1 < c.half", None),
    ],
)
def test_truth(stated: dict[str, object], text: str, truth: bool | None) -> None:
    assert evaluate(expression(text), assume(stated)) is truth


def test_value() -> None:
    known = assume({"x": "a", "flag": True})
    assert value_of(expression("x if flag else y"), known) == Known("a")
    assert value_of(expression("y or x"), known) == Truth(True)
    assert value_of(expression("-3 + 1"), known) == Known(-2)


@pytest.mark.parametrize(
    ("text", "truth", "then", "found"),
    [
        ("a and not b", True, "b", False),
        ("a and b", False, "a", None),
        ("1 and b", False, "b", False),
        ("0 or b", True, "b", True),
        ("a < b < c", True, "b < c", True),
        ("bool(a)", False, "a", False),
        ("a == 'x'", True, "a == 'y'", False),
        ("a != 'x'", True, "a == 'x'", False),
        ("a is not None", True, "a is None", False),
        ("f()", True, "f()", None),
    ],
)
def test_a_branch_taken_adds_its_test(
    text: str, truth: bool, then: str, found: bool | None
) -> None:
    refined = refine(NOTHING, expression(text), truth)
    assert refined is not None
    assert evaluate(expression(then), refined) is found


def test_a_branch_that_cannot_be_taken() -> None:
    assert refine(assume({"x": "a"}), expression("x == 'b'"), True) is None
    assert refine(assume({"x": True, "y": False}), expression("x and not y"), False) is None


def test_assumptions_are_values() -> None:
    one = assume({"a": True})
    assert assume({"b": False}, one) == assume({"b": False, "a": True})
    assert evaluate(expression("b"), one) is None
    assert Known(1) != Known(True)


@pytest.mark.parametrize("stated", [{"f()": True}, {"f()": "x"}, {"a": True, "not a": True}])
def test_what_cannot_be_assumed(stated: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"lasting|contradicts"):
        assume(stated)


def test_equal_facts_are_one_object() -> None:
    """Facts that come by two ways, or from another process, are the same; other facts are not."""
    there = assume({"a": True, "b": False})
    back = assume({"b": False, "a": True})
    assert there is back
    assert pickle.loads(pickle.dumps(there)) is there
    assert copy.copy(there) is there
    assert there != assume({"a": True})
    assert NOTHING.facts == frozenset()
