"""Which of two calls of a program may run behind the other, across functions."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import Function, Project, build
from amp_migrate.project.rounds import may_run_behind


def _places(project: Project, name: str) -> tuple[Function, ast.Call]:
    module = project.modules["main.py"]
    call = next(
        node
        for node in module.tree.nodes(ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id == name
    )
    return project.function_of(module, call), call


def _behind(text: str) -> tuple[bool, bool]:
    """Tell whether ``late()`` may run behind ``early()``, and the other way round."""
    project = build({"main.py": Tree("main.py", dedent(text))})
    early, late = _places(project, "early"), _places(project, "late")
    return may_run_behind(project, early, late), may_run_behind(project, late, early)


_IN_TURN = """
    from elsewhere import early, late

    class Part:
        def __init__(self):
            early()

    class Whole:
        def __init__(self):
            self.part = Part()
            self.make()

        def make(self):
            late()

    Whole()
    """
_IN_ONE = """
    from elsewhere import early, late

    def main():
        early()
        late()
    """
_ROUND = """
    from elsewhere import early, late

    def one():
        early()

    def other():
        late()

    def main(count):
        for _ in range(count):
            one()
            other()
    """
_IN_ARMS = """
    from elsewhere import early, late

    def main(which):
        if which:
            early()
        else:
            late()
    """
_BY_OTHERS = """
    from elsewhere import early, late

    class Trainer:
        def setup(self):
            early()

        def score(self):
            late()
    """


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(_IN_ONE, (True, False), id="in one function"),
        pytest.param(_IN_TURN, (True, False), id="in constructors"),
        pytest.param(_ROUND, (True, True), id="in a loop"),
        pytest.param(_IN_ARMS, (False, False), id="in arms of a test"),
        pytest.param(_BY_OTHERS, (True, True), id="called from elsewhere"),
    ],
)
def test_what_may_run_behind(text: str, expected: tuple[bool, bool]) -> None:
    """Along calls, rounds of loops included; what nobody in sight calls may run in any order."""
    assert _behind(text) == expected
