"""What refusals advise can be done, and then the program migrates."""

from __future__ import annotations

import re

import pytest
from fixture_support import Case, cases
from rules.advice.advised import ADVISED, Advised

from amp_migrate.engine import migrate
from amp_migrate.outcome import Result
from amp_migrate.plan.model import Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

CASES = {case.name: case for case in cases()}
# Where the advice is to give the files that are missing, to migrate by hand, or needs options of the case: nothing of
# it can be tried here.
ELSEWHERE = {
    "refused/amp_among_what_a_library_takes",
    "refused/amp_in_a_dictionary_filled_later",
    "refused/amp_stored_out_of_sight",
    "refused/callback_of_a_library_or_a_list",
    "refused/criterion_out_of_sight",
    "refused/flag_of_a_library_inverted",
    "refused/flag_passed_by_a_caller",
    "refused/mmcv_hook_alone",
    "refused/mmcv_runner_elsewhere",
    "refused/mmcv_runner_unseen",
    "refused/perturbation_in_a_generator",
    "refused/wrapper_in_a_registry",
    "refused/zero_grad_after_first_step_kept",
}


def _migrated(case: Case, files: dict[str, str], scaler: str = "auto") -> Result:
    own = {name: text for name, text in files.items() if name not in case.library}
    sources = [Source.from_bytes(name, text.encode()) for name, text in own.items()]
    return migrate(sources, Settings(api="torch.cuda.amp", scaler=scaler))


def _edited(case: Case, advised: Advised) -> dict[str, str]:
    files = dict(case.before)
    for edit in advised.edits:
        name = edit[0] if len(edit) == 3 else next(iter(files))
        old, new = edit[-2:]
        assert old in files[name]
        files[name] = files[name].replace(old, new)
    for name, text in files.items():
        compile(text, name, "exec")
    return files


@pytest.mark.parametrize("advised", ADVISED, ids=lambda advised: advised.case)
def test_who_follows_the_advice_gets_the_rest_migrated(advised: Advised) -> None:
    """The finding says what to do, and nothing is left when that was done."""
    case = CASES[advised.case]
    advice = [finding.advice for finding in _migrated(case, case.before).plan.findings()]
    assert any(advised.advice in text for text in advice), advice

    result = _migrated(case, _edited(case, advised), advised.scaler)

    left = [(f.code, f.message) for f in result.plan.findings() if f.status is Status.LEFT]
    if advised.leads_to:
        assert {code for code, _ in left} - {"AMP101"} == {advised.leads_to}
        return
    assert left == []
    after = [o.before.text if o.after is None else o.after for o in result.outcomes]
    gone = r"^ *(from|import) apex(?!\.(contrib\.)?optimizers import FusedAdam$)"
    assert not re.search(gone, "\n".join(after), re.M)


def test_every_refusal_is_followed() -> None:
    refused = {name for name in CASES if name.startswith("refused/")}

    assert refused - ELSEWHERE <= {advised.case for advised in ADVISED}
    assert refused - {advised.case for advised in ADVISED} >= ELSEWHERE
