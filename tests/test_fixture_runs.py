"""Runnable fixtures, before under the reference Apex and after natively: the same bits."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
from fixture_run import Mode, run
from fixture_support import USUAL_OVERFLOW, Case, cases, only_fixes, with_library
from fixture_verified import STEP_BY_STEP

from amp_migrate.rules.calls import amp105_step

# Its script reads a name that is never bound, which no migration mends.
RAISING = {"simple/residual_net_o1"}
RUNS = [(with_library(case), mode) for case in cases() for mode in case.modes]
# With casts off and an overflow, `verify` compares some step by step: tests/equivalence/test_fixtures_verify.py.
PRINTED = [
    (case, mode)
    for case, mode in RUNS
    if mode != "logic" or case.overflow != USUAL_OVERFLOW or case.name not in STEP_BY_STEP
]


def _ended(case: Case, printed: str) -> bool:
    """Tell whether a program says how it trained, and is not ended by an exception."""
    lines = printed.splitlines()
    return bool(lines) and (case.name in RAISING or not lines[-1].startswith("raised"))


@pytest.mark.parametrize(("case", "mode"), PRINTED, ids=[f"{c.name}-{mode}" for c, mode in PRINTED])
def test_migrated_program_trains_the_same(case: Case, mode: str) -> None:
    """Printed losses and parameter digests agree, with casts and without, through an overflow."""
    how = Mode.named(mode, case.overflow)
    before = run(case.reference, case.run, case.run_args, how, apex=True)
    after = run(case.after, case.run, case.run_args, how, apex=False)
    assert _ended(case, before)
    assert after == before


MORE = [(case, mode, args) for case, mode in RUNS for args in case.more_args]


@pytest.mark.parametrize(
    ("case", "mode", "args"), MORE, ids=[f"{c.name}-{mode}-{'-'.join(a)}" for c, mode, a in MORE]
)
def test_migrated_program_trains_the_same_otherwise(
    case: Case, mode: str, args: tuple[str, ...]
) -> None:
    """So it does with other arguments, as with those that leave AMP off."""
    how = Mode.named(mode, 0)
    before = run(case.reference, case.run, args, how, apex=True)
    assert _ended(case, before)
    assert run(case.after, case.run, args, how, apex=False) == before


CORRECTED = [(case, mode) for case, mode in RUNS if any(e.status == "fixed" for e in case.findings)]


@pytest.mark.parametrize(
    ("case", "mode"), CORRECTED, ids=[f"{c.name}-{mode}" for c, mode in CORRECTED]
)
def test_only_fixes_lead_to_the_same_training(case: Case, mode: str) -> None:
    """The Apex program with the fixes alone trains as the migrated one."""
    how = Mode.named(mode, case.overflow)
    before = run(only_fixes(case), case.run, case.run_args, how, apex=True)
    after = run(case.after, case.run, case.run_args, how, apex=False)
    assert _ended(case, before)
    assert after == before


def test_a_wrong_migration_is_noticed() -> None:
    """Leaving out `unscale_` before clipping shows in what a program prints."""
    case = next(case for case in cases() if case.name == "clip/master_params")
    name = case.run
    wrong = {name: case.after[name].replace("    scaler.unscale_(optimizer)\n", "")}
    assert wrong != case.after
    how = Mode(casts=False, overflow=0)
    before = run(case.before, name, case.run_args, how, apex=True)
    assert run(wrong, name, case.run_args, how, apex=False) != before


_CALLER = """
import torch
from example import Model
from kit import DetectionEngine, Engine

torch.manual_seed(78)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
batches = [(torch.randn(4, 5), torch.randint(0, 3, (4,))) for _ in range(6)]
INITIALIZED
engine = Engine(model, optimizer, fp16=True GIVEN)
for _ in range(2):
    print(repr(engine.train(batches)), repr(engine.evaluate(batches)))
    print(repr(DetectionEngine.train(batches, model, optimizer, fp16=True GIVEN)))
print([p.tolist() for p in model.parameters()])
"""


@pytest.mark.parametrize("mode", ["logic", "casts"])
def test_a_caller_that_asks_a_library_for_amp_trains_the_same(mode: str) -> None:
    """Where only callers out of sight turn AMP on, one that hands over its GradScaler trains as under Apex."""
    case = next(case for case in cases() if case.name == "project/flag_of_a_library")
    how = Mode.named(mode, 3)

    def printed(files: dict[str, str], initialized: str, given: str, apex: bool) -> str:
        caller = _CALLER.replace("INITIALIZED", initialized).replace(" GIVEN", given)
        return run(files | {"caller.py": caller}, "caller.py", (), how, apex=apex)

    initialize = "from apex import amp\nmodel, optimizer = amp.initialize(model, optimizer)"
    before = printed(case.before, initialize, "", True)
    after = printed(case.after, "scaler = torch.cuda.amp.GradScaler()", ", scaler=scaler", False)
    assert after == before
    assert "Error" not in before
    assert "fp16 needs a GradScaler" in printed(case.after, "", "", False)


_TWO = """
import torch
import torch.nn.functional as F
IMPORTED

torch.manual_seed(53)
encoder, head = torch.nn.Linear(4, 5), torch.nn.Linear(5, 3)
encoder_optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
head_optimizer = torch.optim.Adam(head.parameters(), lr=0.1)
MADE
for i in range(12):
    x, y = torch.randn(6, 4), torch.randn(6, 3)
    encoder_optimizer.zero_grad()
    head_optimizer.zero_grad()
    loss = F.mse_loss(head(encoder(x)), y)
TRAINED
    print(repr(loss.item()))
print([p.tolist() for net in (encoder, head) for p in net.parameters()])
"""
_OVERFLOWS = (
    "if i in (3, 4, 8):\n    (head if i == 4 else encoder).weight.grad[0, 0] = float('inf')\n"
)
_APEX = f"""with amp.scale_loss(loss, [encoder_optimizer, head_optimizer]) as scaled:
    scaled.backward()
{indent(_OVERFLOWS, "    ")}encoder_optimizer.step()
head_optimizer.step()
"""
_EACH = "scaler.step(encoder_optimizer)\nscaler.step(head_optimizer)\nscaler.update()\n"
_INITIALIZE = "[encoder, head], [encoder_optimizer, head_optimizer] = amp.initialize(\n    [encoder, head], [encoder_optimizer, head_optimizer], opt_level='O1')"


def test_one_decision_for_several_optimizers_is_that_of_apex() -> None:
    """What `explain AMP105` shows skips all optimizers of a loss where one overflows, as Apex did."""
    shown = dedent((amp105_step.__doc__ or "").partition("as Apex did:\n")[2])

    def printed(imported: str, made: str, trained: str, *, apex: bool) -> str:
        text = _TWO.replace("IMPORTED", imported).replace("MADE", made)
        files = {"train.py": text.replace("TRAINED", indent(trained, "    "))}
        return run(files, "train.py", (), Mode(casts=False, overflow=0), apex=apex)

    def native(stepped: str) -> str:
        trained = f"scaler.scale(loss).backward()\n{_OVERFLOWS}{stepped}"
        return printed("", "scaler = torch.cuda.amp.GradScaler()", trained, apex=False)

    before = printed("from apex import amp", _INITIALIZE, _APEX, apex=True)
    assert len(before.splitlines()) == 13
    assert native(shown) == before
    assert native(_EACH) != before
