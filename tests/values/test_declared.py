"""What annotations say of the items of collections."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.project.helpers import Case

CLASSES = """
    from typing import Dict, List, Tuple

    class A:
        def step(self): ...

    class B:
        def step(self): ...

"""


@pytest.mark.parametrize(
    ("declared", "read", "found"),
    [
        ("List[B]", "for one in held: one.step()", {"B.step"}),
        ("list[A]", "for one in held: one.step()", {"A.step"}),
        ("Dict[str, B]", "for one in held.values(): one.step()", {"B.step"}),
        ("Tuple[A, ...]", "for one in held: one.step()", {"A.step"}),
        ("Tuple[A, B]", "other, one = held; one.step()", set()),
        ("Tuple[A, B]", "one, other = held; one.step()", set()),
    ],
)
def test_items_are_of_the_class_that_is_declared(declared: str, read: str, found: set[str]) -> None:
    """Of a tuple with a class for each item none is taken for another."""
    text = dedent(CLASSES) + f"def run(held: {declared}):\n    {read}\n"
    assert Case({"main.py": text}).callees("main.py", "one.step()") == found
