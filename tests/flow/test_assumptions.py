"""What is known once more is known."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.flow.assumption import Assumption, Known, Truth, Value
from amp_migrate.flow.terms import term

_A = {"a": Known(1), "b": Truth(True)}
_OTHERS: list[dict[str, Value]] = [
    {},
    {"a": Known(2)},
    {"c": Truth(False)},
    {"b": Known(0), "c": Known(1)},
]


def _assumption(values: dict[str, Value]) -> Assumption:
    known = Assumption()
    for name, value in values.items():
        found = term(ast.Name(name, ast.Load()))
        assert found is not None
        known = known.with_fact(found, value)
    return known


@pytest.mark.parametrize("other", _OTHERS)
def test_what_is_known_later_replaces_what_was(other: dict[str, Value]) -> None:
    assert _assumption(_A).with_all(_assumption(other)) is _assumption({**_A, **other})
