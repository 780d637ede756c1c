"""`--only-fixes`: mistakes are corrected in a program that stays with Apex."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fixture_support import FIXES_ALONE, Case, cases, fixed_alone
from shell_support import APEX_PROGRAM, amp_migrate

from amp_migrate.engine import migrate, unstable
from amp_migrate.outcome import Result
from amp_migrate.plan.model import Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

WRONG = APEX_PROGRAM.replace(
    """    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
""",
    """    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
        optimizer.step()
""",
)
LOST = """from apex import amp


def train(model, optimizer, compute):
    model, optimizer = amp.initialize(model, optimizer)
    with amp.scale_loss(compute(), optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""


def test_writes_the_corrected_apex_program(folder: Path) -> None:
    """The result is the Apex program without its mistake, and a second run has nothing to do."""
    (folder / "a.py").write_text(WRONG)

    done = amp_migrate(".", "--only-fixes")

    assert (folder / "a.py").read_text() == APEX_PROGRAM
    assert done.stderr.endswith("Apex stays: 1 fixed, 0 left (in 1 file)\nrewrote 1 file\n")
    assert done.exit_code == 0
    assert amp_migrate(".", "--only-fixes").stderr == "Apex stays: nothing to fix\n"


def test_check_and_report_count_fixes_alone(folder: Path) -> None:
    """Apex that stays is not pending; a fix is."""
    (folder / "a.py").write_text(WRONG)
    (folder / "b.py").write_text(APEX_PROGRAM)

    checked = amp_migrate("a.py", "--only-fixes", "--check")
    right = amp_migrate("b.py", "--only-fixes", "--check")
    listed = amp_migrate(".", "--only-fixes", "--check", "--output-format", "json")
    report = json.loads(listed.stdout)

    assert (checked.exit_code, right.exit_code) == (1, 0)
    assert checked.stderr.endswith("exit 1: 1 file would change\n")
    counts = {key: report["summary"][key] for key in ("found", "migrated", "fixed", "left")}
    assert counts == {"found": 1, "migrated": 0, "fixed": 1, "left": 0}
    assert [item["code"] for item in report["findings"]] == ["AMP212"]


def test_what_could_not_be_migrated_was_not_examined(folder: Path) -> None:
    """No fix is made by halves: the unit stays, the finding says why, and the exit code is 1."""
    (folder / "a.py").write_text(LOST)

    done = amp_migrate(".", "--only-fixes")

    assert (folder / "a.py").read_text() == LOST
    assert "was not examined for mistakes: no forward pass" in done.stderr
    assert done.exit_code == 1


def test_rules_can_be_chosen_but_not_all_switched_off(folder: Path) -> None:
    """`--ignore` holds; `--no-fixes` would leave nothing, so it is refused; a setting of it gives way."""
    (folder / "a.py").write_text(WRONG)
    (folder / "pyproject.toml").write_text("[tool.amp-migrate]\nfixes = false\n")

    ignored = amp_migrate(".", "--only-fixes", "--ignore", "AMP212")
    refused = amp_migrate(".", "--only-fixes", "--no-fixes")

    assert "AMP212 is switched off" in ignored.stderr
    assert (folder / "a.py").read_text() == WRONG
    assert refused.exit_code == 2
    assert "--only-fixes and --no-fixes exclude each other" in refused.stderr
    assert amp_migrate(".", "--only-fixes").exit_code == 0
    assert (folder / "a.py").read_text() == APEX_PROGRAM


# Apex itself enters the block elsewhere; the migration has no block.
LEFT_ALONE = {"fixes/step_while_a_block_is_entered", "fixes/left_scaled_through_a_helper"}


def _fixed_by_migration(case: Case) -> set[str]:
    return {e.code for e in case.findings if e.status == "fixed"}


# Of the many without a mistake every fourth.
_WITHOUT = [case.name for case in cases() if not _fixed_by_migration(case)]
_THINNED = frozenset(_WITHOUT[::4])
HELD = [
    case
    for case in cases()
    if not case.args and (_fixed_by_migration(case) or case.name in _THINNED)
]


@pytest.mark.parametrize("case", HELD, ids=lambda case: case.name)
def test_fixtures_get_the_fixes_of_their_migration(case: Case) -> None:
    """The same rules fix with and without the migration; nothing else changes, and nothing twice."""
    alone = fixed_alone(tuple(case.before.items()))
    whole = _fixed_by_migration(case)
    if case.name in LEFT_ALONE:
        said = (Status.LEFT, Status.NOTE)
        left = {f.code for f in alone.plan.findings() if f.status in said}
        assert whole <= left
        whole = set()
    changed = any(outcome.after is not None for outcome in alone.outcomes)
    assert _fixed(alone) == whole
    assert changed == bool(alone.tally.fixed)
    assert not changed or unstable(alone, FIXES_ALONE) == []


def _fixed(result: Result) -> set[str]:
    findings = result.plan.findings()
    return {f.code for f in findings if f.status is Status.FIXED}


FIXED = [
    case
    for case in cases()
    if case.name.startswith("fixes/") and _fixed_by_migration(case)
    if case.name not in LEFT_ALONE
]


# The clip moves with what Apex alone needs around it: its test, or the choice of its parameters. At once that is gone.
ELSEWHERE = {
    "fixes/clip_in_one_branch",
    "fixes/clip_every_micro_batch_step_by_helper",
}
# There a backward remains in each branch, which is written once where no clip stands in either.
WRITTEN_ONCE = {"fixes/clip_every_micro_batch_where_amp_is_on"}


@pytest.mark.parametrize("case", FIXED, ids=[case.name for case in FIXED])
def test_migrating_afterwards_is_migrating_at_once(case: Case) -> None:
    """The fixes first and the migration then lead to the same text, or to its lines in another order."""
    fixed = _files(fixed_alone(tuple(case.before.items())))
    assert fixed != case.before
    sources = [Source.from_bytes(name, text.encode()) for name, text in fixed.items()]
    after = _files(migrate(sources, Settings(api="torch.cuda.amp")))
    assert (after == case.after) is (case.name not in ELSEWHERE | WRITTEN_ONCE)
    if case.name in WRITTEN_ONCE:
        assert {*_lines(after)[case.run]} == {*_lines(case.after)[case.run]} - {"else:"}
    else:
        assert _lines(after) == _lines(case.after)


def _lines(files: dict[str, str]) -> dict[str, list[str]]:
    return {name: sorted(map(str.strip, text.split("\n"))) for name, text in files.items()}


def _files(result: Result) -> dict[str, str]:
    assert [o.failed for o in result.outcomes if o.failed] == []
    return {o.path: o.before.text if o.after is None else o.after for o in result.outcomes}
