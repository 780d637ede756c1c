"""The labels of the charts in the verify report."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from amp_migrate.equivalence.report.charts import curves

_SIZES = st.floats(1e-12, 1e6)
_VALUES = st.one_of(st.just(0.0), _SIZES, _SIZES.map(lambda size: -size))
_LABEL = re.compile(r'text-anchor="end">([^<]*)<')


def _labels(*values: float) -> list[str]:
    return _LABEL.findall(curves(list(values), list(values), []))


@settings(max_examples=200, deadline=None)
@given(_VALUES, _VALUES.map(abs))
@example(1.192092896e-07, 0.0)
def test_no_label_of_an_axis_repeats(low: float, rise: float) -> None:
    labels = _labels(low, low + rise)
    assert len(set(labels)) == len(labels) > 1


@pytest.mark.parametrize(
    ("values", "first"),
    [((65536.0, 65536.0), "65.470k"), ((0.0, 3000.0), "-0.2k"), ((1.0, 1e4), "1e0")],
)
def test_labels_are_as_short_as_they_can_be_told_apart(
    values: tuple[float, float], first: str
) -> None:
    assert _labels(*values)[0] == first
