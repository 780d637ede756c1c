"""What refusals advise can be done, and then the program migrates."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from fixture_support import Case, cases

from amp_migrate.engine import Result, migrate
from amp_migrate.settings import Settings
from amp_migrate.source import Source


class Edit(NamedTuple):
    """What a person does about a refused fixture: words of the advice, and the text before and after."""

    case: str
    advice: str
    old: str
    new: str


EDITS = (
    Edit(
        "closure",
        "call closure() before the step and write optimizer.step()",
        "    optimizer.step(closure)",
        "    closure()\n    optimizer.step()",
    ),
    Edit(
        "clip_in_one_branch",
        "move the clip with its test to where the optimizer steps",
        "            torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), args.clip)\n"
        "        else:\n"
        "            loss.backward()\n"
        "        if (i + 1) % args.accum == 0:\n",
        "        else:\n"
        "            loss.backward()\n"
        "        if (i + 1) % args.accum == 0:\n"
        "            if args.fp16:\n"
        "                torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), args.clip)\n",
    ),
    Edit(
        "skip_keeps_gradients",
        "call optimizer.zero_grad() on this way as well",
        "            optimizer.step()\n            optimizer.zero_grad()",
        "            optimizer.step()\n            optimizer.zero_grad()\n"
        "        else:\n            optimizer.zero_grad()",
    ),
    Edit(
        "norm_and_count_decide",
        "read them inside `if (i + 1) % args.every == 0:` and zero them there in any case",
        "        norm = torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)\n"
        "        if (i + 1) % args.every == 0 and norm < 10:\n"
        "            optimizer.step()\n"
        "            optimizer.zero_grad()\n",
        "        if (i + 1) % args.every == 0:\n"
        "            norm = torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)\n"
        "            if norm < 10:\n"
        "                optimizer.step()\n"
        "            optimizer.zero_grad()\n",
    ),
    Edit(
        "initialized_in_the_first_pass_of_a_loop",
        "call amp.initialize once, before the loop",
        "    for epoch in range(epochs):\n"
        "        if epoch == 0:\n"
        '            model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
        '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n'
        "    for epoch in range(epochs):\n",
    ),
    Edit(
        "helper_steps_every_k",
        "read the gradients in step() straight before this step",
        "        optimizer.step()\n",
        "        clip(optimizer)\n        optimizer.step()\n",
    ),
    Edit(
        "clip_beside_a_counted_step",
        "read them in train(), straight before optimizer.step()",
        "            optimizer.step()\n",
        "            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
        "            optimizer.step()\n",
    ),
    Edit(
        "plain_backward_beside",
        "call optimizer.zero_grad() behind it",
        "        loss_critic.backward()\n",
        "        loss_critic.backward()\n        optimizer.zero_grad()\n",
    ),
    Edit("helper_with_other_settings", "with the same settings", "0.1, None)", '0.1, "O1")'),
    Edit("callback_object", "run again with --scaler module", "", ""),
    Edit("steps_of_nobody", "run again with --scaler module", "", ""),
)
GOES = {
    "helper_steps_every_k": "        clip(optimizer)\n        step(",
    "clip_beside_a_counted_step": "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    return",
}
"""What the edit takes away besides, up to the last word, which stays."""


def _case(name: str) -> Case:
    return next(case for case in cases() if case.name == f"refused/{name}")


def _migrated(case: Case, text: str, scaler: str = "auto") -> Result:
    source = Source.from_bytes("before.py", text.encode())
    return migrate([source], Settings(api="torch.cuda.amp", scaler=scaler))


# What the advice leads to is refused by the check of the written text: no update() where the step is skipped.
CHECKED = {"norm_and_count_decide": "AMP913"}


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.case)
def test_who_follows_the_advice_gets_the_rest_migrated(edit: Edit) -> None:
    """The finding says what to do, and nothing is left when that was done."""
    case = _case(edit.case)
    before = case.before["before.py"]
    advice = [finding.advice for finding in _migrated(case, before).plan.findings()]
    assert any(edit.advice in text for text in advice), advice

    text = before
    if edit.case in GOES:
        gone = GOES[edit.case]
        last = gone.rpartition("\n")[2]
        assert gone in text
        text = text.replace(gone, last)
    assert edit.old in text
    scaler = "auto" if edit.old else "module"
    result = _migrated(case, text.replace(edit.old, edit.new) if edit.old else text, scaler)

    left = [(f.code, f.message) for f in result.plan.findings() if f.status.value == "left"]
    if edit.case in CHECKED:
        assert CHECKED[edit.case] in {code for code, _ in left}
        return
    assert left == []
    assert result.tally.migrated > 0
