"""Programs that share no file are migrated beside each other as each would be alone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from fixture_support import cases

from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

_CASES = {c.name: c for c in cases() if list(c.before) == ["before.py"]}
_AWAITING = {"refused/class_alone"}
"""What is left as nothing in the files given initializes Apex: any program beside it may be the one that does."""
_KNOWN = (
    ("dual/engine_of_deepspeed", "fixes/clip_inside_block"),
    ("rest/sync_batch_norm_with_fallback", "refused/norm_told_where_no_step_follows"),
    ("flags/amp_attribute_of_callers", "several/optimizers_of_a_dictionary"),
    ("evaluate/lambdas_and_partials", "refused/optimizer_of_a_native_runner"),
)


def _pairs() -> list[tuple[str, str]]:
    """Return pairs of fixtures, each of another part of the names in order."""
    names = sorted(_CASES.keys() - _AWAITING)
    half = len(names) // 2
    return [*_KNOWN, *zip(names[:half:12], names[half::12], strict=False)]


@pytest.mark.parametrize(("one", "other"), _pairs())
def test_two_programs_in_one_folder(one: str, other: str) -> None:
    """Neither changes what is written of the other one."""
    beside = _written({"one.py": one, "other.py": other})
    assert beside == {"one.py": _alone(one), "other.py": _alone(other)}


def _alone(name: str) -> str | None:
    """Return what is written of a program alone, which is the text of its fixture but for options."""
    case = _CASES[name]
    if case.args:
        return _written({"before.py": name})["before.py"]
    return case.after["before.py"] if case.changed else None


def _written(programs: Mapping[str, str]) -> dict[str, str | None]:
    sources = [
        Source.from_bytes(path, _CASES[name].before["before.py"].encode())
        for path, name in programs.items()
    ]
    outcomes = migrate(sources, Settings()).outcomes
    return {outcome.path: outcome.after for outcome in outcomes}
