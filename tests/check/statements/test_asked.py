"""The tests around a statement, without those that follow from the others."""

from __future__ import annotations

import pytest

from amp_migrate.check.statements.asked import Atom, without_implied

_KIND = ("kind == 'pytorch'", True)


@pytest.mark.parametrize(
    ("found", "left"),
    [
        ({_KIND, ("kind == 'apex'", False)}, {_KIND}),
        ({_KIND, ("kind == 'apex' and mode == 'train'", False)}, {_KIND}),
        ({_KIND, ("kind in ('apex', 'none')", False)}, {_KIND}),
        ({("flag", True), ("flag or other", True)}, {("flag", True)}),
        ({("x is None", True), ("x", False)}, {("x is None", True)}),
        (
            {("kind == 'apex'", False), ("mode == 'train'", True)},
            {("kind == 'apex'", False), ("mode == 'train'", True)},
        ),
        ({_KIND, ("for x in xs", True)}, {_KIND, ("for x in xs", True)}),
        ({("flag", True), ("flag and other", False)}, {("flag", True), ("flag and other", False)}),
    ],
)
def test_what_follows_is_left_out(found: set[Atom], left: set[Atom]) -> None:
    """The shortest that says the same is left."""
    assert without_implied(found) == left
