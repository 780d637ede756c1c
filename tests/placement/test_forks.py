"""Which statements go one of two ways, and by what test."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.flow.cfg.subject import is_fork, question, ways


@pytest.mark.parametrize(
    ("text", "asked", "yes", "no"),
    [
        ("if a:\n    b()\nelse:\n    c()", "a", "b()", "c()"),
        ("match i % k:\n    case 0:\n        b()", "i % k == 0", "b()", ""),
        (
            "match i % k:\n    case 0 | 1:\n        b()\n    case _:\n        c()",
            "i % k == 0 or i % k == 1",
            "b()",
            "c()",
        ),
        (
            "match f(i):\n    case False:\n        b()\n    case n:\n        c(n)",
            "f(i) is False",
            "b()",
            "c(n)",
        ),
        ("match i == k:\n    case True:\n        b()", "i == k", "b()", ""),
    ],
)
def test_a_fork_asks_once(text: str, asked: str, yes: str, no: str) -> None:
    """An `if`, and a match whose first case compares and whose other one takes the rest."""
    node = ast.parse(text).body[0]
    assert is_fork(node)
    assert ast.unparse(question(node)) == asked
    assert ["\n".join(map(ast.unparse, way)) for way in ways(node)] == [yes, no]


@pytest.mark.parametrize(
    "text",
    [
        "match i % k:\n    case 0 if j:\n        b()",
        "match i % k:\n    case 0:\n        b()\n    case 1:\n        c()",
        "match i % k:\n    case 0:\n        b()\n    case _ if j:\n        c()",
        "match i % k:\n    case n:\n        b()",
        "match i:\n    case [0, *rest]:\n        b()",
        "while a:\n    b()",
    ],
)
def test_others_are_no_forks(text: str) -> None:
    """Guards, further cases and patterns that compare nothing leave more than two ways."""
    assert not is_fork(ast.parse(text).body[0])
