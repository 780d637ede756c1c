"""A sample of generated FP32 programs: enabled, they train the same without casts, and raise nothing with them."""

from __future__ import annotations

import pytest
from generated.judging.plain import enabled, plain, refactored

from amp_migrate.enable.enabling import Choices


@pytest.mark.parametrize(
    ("dtype", "seeds"), [("float16", (7, 30, 92)), ("bfloat16", (77, 3098, 3239))]
)
def test_generated_program_trains_as_in_fp32(dtype: str, seeds: tuple[int, ...]) -> None:
    found = enabled([plain(seed) for seed in seeds], Choices(dtype))
    assert [(verdict.outcome, verdict.why) for verdict in found] == [("enabled", "")] * len(seeds)


def test_refactored_program_trains_as_in_fp32() -> None:
    """Options in a tuple, which has no option itself, and an optimizer that is logged before its step, among others."""
    found = enabled([refactored(seed) for seed in (3, 102, 19, 56)], Choices("float16"))
    assert [(verdict.outcome, verdict.why[:6]) for verdict in found] == [
        ("enabled", ""),
        ("enabled", ""),
        ("enabled", ""),
        ("left", "AMP592"),
    ]
