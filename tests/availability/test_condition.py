"""Tests that are reduced, joined and turned round as text say what they said."""

from __future__ import annotations

import ast
import itertools

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.flow.condition import (
    FALSE,
    TRUE,
    Condition,
    as_bool,
    conjunction,
    either,
    is_looked_up,
    is_plain,
    names,
    negate,
    operand,
    reduce,
    speller,
)

_LEAVES = ["a", "b", "k", "o", "True", "None", "a is not None", "b == a"]
_ONCE = [
    *_LEAVES,
    *(f"not {leaf}" for leaf in _LEAVES),
    *(f"{x} {word} {y}" for x in _LEAVES for y in _LEAVES for word in ("and", "or")),
]
_DEEP = [
    f"({x}) {word} not ({y})" for x in _ONCE[::3] for y in _ONCE[::5] for word in ("and", "or")
]
_VALUES = [
    {"a": a, "b": b, "k": True, "o": False} for a, b in itertools.product([False, True], repeat=2)
]


def _known(node: ast.expr) -> bool | None:
    return {"k": True, "o": False}.get(node.id) if isinstance(node, ast.Name) else None


def _holds(condition: Condition, values: dict[str, bool]) -> bool:
    if condition.value is not None:
        return condition.value
    return bool(eval(condition.text, {}, dict(values)))


def _reduced(text: str) -> Condition:
    return reduce(ast.parse(text, mode="eval").body, _known, ast.unparse)


@pytest.mark.parametrize("texts", [_ONCE, _DEEP], ids=["flat", "deep"])
def test_reduced_and_negated_tests_say_the_same(texts: list[str]) -> None:
    """With what is known in its place a test comes out as before, and its opposite as the opposite."""
    for text in texts:
        found = _reduced(text)
        assert found.value is not None or not {"k", "o"} & names(found.text), text
        for values in _VALUES:
            meant = bool(eval(text, {}, dict(values)))
            assert _holds(found, values) is meant, text
            assert _holds(negate(found), values) is not meant, text
            assert _holds(as_bool(found, frozenset({"a"})), values) is meant, text


def test_joined_tests_say_the_same() -> None:
    """All of some tests, and any of them."""
    conditions = [_reduced(text) for text in _ONCE[::4]]
    for one, other in itertools.product(conditions, repeat=2):
        for values in _VALUES:
            both = _holds(one, values), _holds(other, values)
            assert _holds(conjunction([one, other]), values) is all(both)
            assert _holds(either([one, other]), values) is any(both)


WRITTEN: dict[str, tuple[str, str]] = {
    "nothing known": ("a and b", "a and b"),
    "as it is written": ("a  and\tb", "a  and\tb"),
    "a known part": ("k and a", "a"),
    "a known part in between": ("a and k and b", "a and b"),
    "the same twice": ("a or a", "a"),
    "a walrus": ("(x := a)", "a"),
    "turned round": ("not (a and b)", "not (a and b)"),
    "turned round twice": ("not not a", "a"),
    "not None": ("not (a is not None)", "a is None"),
    "None": ("not (a is None)", "a is not None"),
    "an item": ("not (a in b)", "a not in b"),
    "an or within an and": ("k and (a or b) and b", "(a or b) and b"),
    "a choice": ("k and (a if b else b) and b", "(a if b else b) and b"),
    "a comparison": ("k and args.level != 'O0'", "args.level != 'O0'"),
}


@pytest.mark.parametrize(("text", "written"), WRITTEN.values(), ids=WRITTEN)
def test_text_of_a_reduced_test(text: str, written: str) -> None:
    """What is left keeps its words, with parentheses where it needs them."""
    tree = Tree("m.py", text + "\n")
    (stmt,) = tree.module.body
    assert isinstance(stmt, ast.Expr)
    assert reduce(stmt.value, _known, speller(tree)) == Condition(None, written)


def test_constants() -> None:
    """What is settled has no text."""
    assert _reduced("o or None") == FALSE and _reduced("k or a") == TRUE
    assert _reduced("a and o") == FALSE and _reduced("not o") == TRUE
    assert conjunction([]) == TRUE and either([]) == FALSE
    assert conjunction([TRUE, Condition(None, "a"), Condition(None, "a")]) == Condition(None, "a")
    assert conjunction([Condition(None, "a"), FALSE]) == FALSE
    assert negate(TRUE) == FALSE
    with pytest.raises(TypeError):
        bool(TRUE)


EITHER: dict[str, tuple[list[str], str]] = {
    "one part more": (["a", "a and b"], "a"),
    "opposite parts": (["a and b", "a and not b"], "a"),
    "opposite parts in another order": (["b and a", "not b and a"], "a"),
    "None or not": (["a and b is None", "a and b is not None"], "a"),
    "neither": (["a and b", "c"], "a and b or c"),
    "three": (["a and b and c", "a and b and not c", "a and not b"], "a"),
    "an or": (["a or b", "c"], "a or b or c"),
}


@pytest.mark.parametrize(("texts", "written"), EITHER.values(), ids=EITHER)
def test_one_of_several_ways(texts: list[str], written: str) -> None:
    """Two ways that differ by one part and its opposite are one."""
    assert either([Condition(None, text) for text in texts]) == Condition(None, written)


def test_ways_that_cover_everything() -> None:
    """A part or its opposite is always true; what is unknown of one way is unknown of all."""
    assert either([Condition(None, "a"), Condition(None, "not a")]) == TRUE
    assert either([TRUE, Condition(None, "")]) == TRUE
    assert either([FALSE, Condition(None, "a")]) == Condition(None, "a")
    assert either([Condition(None, "a"), Condition(None, "")]) == Condition(None, "")


BOOLS: dict[str, tuple[str, str]] = {
    "a bool": ("a", "a"),
    "a string": ("args.level", "bool(args.level)"),
    "a string in an and": ("a and args.level", "a and bool(args.level)"),
    "a string in an or": ("args.level or a", "bool(args.level) or a"),
    "a comparison": ("args.level == 'O1'", "args.level == 'O1'"),
    "turned round": ("not args.level", "not args.level"),
    "looked up": ("config.get('amp')", "bool(config.get('amp'))"),
    "looked up with a default": ("config.get('amp', False)", "config.get('amp', False)"),
    "an attribute that may be missing": ("getattr(args, 'amp', None)", "bool(getattr(args, 'amp', None))"),
    "an attribute with a default": ("getattr(args, 'amp', False)", "getattr(args, 'amp', False)"),
    "another of that name": ("level.args", "level.args"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "written"), BOOLS.values(), ids=BOOLS)
def test_conditions_that_are_bools(text: str, written: str) -> None:
    """`enabled=` takes nothing but a bool."""
    found = as_bool(Condition(None, text), frozenset({"level"}))
    assert found == Condition(None, written)


def test_small_questions() -> None:
    """Names, chains of attributes, and look-ups."""
    assert names("a.b and c[d] or f(e)") == {"a", "c", "d", "f", "e"}
    assert [is_plain(text) for text in ("a", "a.b.c", "a[0]", "f()", "not a", "a.b()")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
    looked = [
        "d.get('a')",
        "d.get('a', 0)",
        "d.get('a', True)",
        "getattr(a, 'b')",
        "get('a')",
        "d.pop('a')",
    ]
    assert [is_looked_up(ast.parse(t, mode="eval").body) for t in looked] == [
        True, True, False, True, False, False,
    ]  # fmt: skip
    assert operand("a or b", conjunction=True) == "(a or b)"
    assert operand("a or b", conjunction=False) == "a or b"
    assert operand("a and b", conjunction=True) == "a and b"
    assert operand("a if b else c", conjunction=False) == "(a if b else c)"
