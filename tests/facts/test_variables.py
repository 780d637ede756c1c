"""Which parts of collections serve as variables."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.facts.scopes import Scopes
from amp_migrate.facts.tree import Tree
from amp_migrate.facts.variables import put_in, variable


def value(text: str) -> str | None:
    """Return what the last argument of the last call of `use` in a text is given by its only assignment."""
    tree = Tree("a.py", text)
    use = [n for n in tree.nodes(ast.Call) if isinstance(n.func, ast.Name) and n.func.id == "use"]
    found = variable(Scopes(tree), use[-1].args[-1])
    made = found.value() if found is not None else None
    return None if made is None else ast.unparse(made)


@pytest.mark.parametrize(
    "text",
    [
        "a = 1\nuse(a)",
        "a = {}\na['k'] = 1\nuse(a['k'])",
        "a = {'k': 1, 'l': 2}\na['l'] = 3\nuse(a['k'])",
        "a = [None] * 2\na[0] = 1\nuse(a[0])",
        "a = (0, 1)\nuse(a[1])",
        "import types\na = types.SimpleNamespace(k=1)\nuse(a.k)",
        "from argparse import Namespace as N\na = N()\na.k = 1\nuse(a.k)",
        "class A:\n    k = None\nA.k = 1\nuse(A.k)",
        "class A:\n    pass\na = A()\na.k = 1\nuse(a.k)",
        "class A:\n    def __init__(self, j, k=1):\n        self.k = k\na = A(2)\nuse(a.k)",
        "class A:\n    def __init__(self, k):\n        self.k = k\na = A(k=1)\nuse(a.k)",
        "a = {'k': {'l': 1}}\nuse(a['k']['l'])",
    ],
)
def test_the_only_assignment_gives_the_value(text: str) -> None:
    assert value(text) == "1"


@pytest.mark.parametrize(
    "text",
    [
        "a = {'k': 1}\na['k'] = 2\nuse(a['k'])",
        "a = {'k': 1}\nother(a)\nuse(a['k'])",
        "a = {'k': 1}\na.update(k=2)\nuse(a['k'])",
        "a = {'k': 1}\na[name] = 2\nuse(a['k'])",
        "a = {'k': 1}\nb = a\nuse(a['k'])",
        "a = {'k': 1}\ndel a['k']\nuse(a['k'])",
        "a = {'k': 1}\nif b:\n    a = {}\nuse(a['k'])",
        "a = {**b, 'k': 1}\nuse(a['k'])",
        "a = [*b, 1]\nuse(a[1])",
        "class A(B):\n    k = 1\nuse(A.k)",
        "class A:\n    k = 1\n    def f(self): ...\nuse(A.k)",
        "class A:\n    k = 1\nA()\nuse(A.k)",
        "class A:\n    def __init__(self, k):\n        self.k = k + 1\na = A(1)\nuse(a.k)",
        "a = make()\na.k = 1\nuse(a.k)",
        "def f(a):\n    a.k = 1\n    use(a.k)",
    ],
)
def test_what_else_reaches_a_collection_may_change_it(text: str) -> None:
    assert value(text) is None


def test_nothing_is_put_into_what_was_put_in() -> None:
    held = ast.parse("self.loop", mode="eval").body
    twice = put_in(ast.parse("self.on and self.steps > 1", mode="eval").body, {"self": held})

    outer = put_in(twice, {"self": ast.parse("self.app", mode="eval").body})

    assert ast.unparse(outer) == "self.app.loop.on and self.app.loop.steps > 1"
