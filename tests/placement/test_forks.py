"""Which statements go one of two ways, by what test, and what that says to other methods of the same object."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.flow.cfg.subject import is_fork, question, ways
from amp_migrate.placement.windows.same_object import known_of_object, on_same_object
from tests.project.helpers import Case


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


TRAINER = """
class Trainer:
    def __init__(self, way):
        self.way = way

    def backward(self, loss, last):
        if self.way == "apex" and last:
            if self.way.upper() != "NONE":
                loss.backward()

    def step(self, loss):
        other = Trainer("none")
        self.backward(loss, True)
        other.backward(loss, True)
"""
SET = "\n    def change(self, way):\n        self.way = way\n"


@pytest.mark.parametrize(("more", "known"), [("", {"self.way"}), (SET, set())], ids=["kept", "set"])
def test_what_constructors_set_is_known(more: str, known: set[str]) -> None:
    """What a method may set later, or a parameter says, is nothing that other methods find as well."""
    case = Case({"a.py": TRAINER + more})
    function = case.function("a.py", "Trainer.backward")
    found = known_of_object(case.project, function, case.call("a.py", "loss.backward()"))
    operands = {o.text for fact in found.facts for o in fact.term.operands} - {"self"}
    assert operands == known


def test_a_method_of_the_same_object() -> None:
    """It is called on the receiver, not on another object of the class."""
    case = Case({"a.py": TRAINER})
    method = case.function("a.py", "Trainer.backward")
    sites = sorted(case.project.callers(method), key=lambda site: site.call.lineno)
    assert [on_same_object(site, method) for site in sites] == [True, False]
