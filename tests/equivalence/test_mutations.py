"""The check, checked: faults seeded into correct migrations are found, correct ones are not blamed."""

from __future__ import annotations

from functools import cache

import pytest

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.comparison.census import compare_census
from amp_migrate.equivalence.comparison.scales import rule_for
from amp_migrate.equivalence.comparison.steps import compare
from amp_migrate.equivalence.runs.records import Run
from equivalence.faults import CENSUS, FAULTS, Fault
from equivalence.forked import record
from equivalence.programs import MODELS, apex_program, native_program, replaced

GROWTH = 12
LOGIC = CaptureConfig("", steps=24, casts=False, inject=(7,), growth=GROWTH)
DTYPES = CaptureConfig("", steps=3, census=True)
NUMERIC = CaptureConfig("", steps=12, inject=(7,))


@cache
def before(model: str, config: CaptureConfig) -> Run:
    """The Apex program's record, made once."""
    run = record(apex_program(model), config)
    assert len(run.steps) == config.steps, run.failure
    return run


def first_finding(model: str, program: str) -> tuple[str, int] | None:
    """Return (quantity, step) of what casts-off bits and the dtype census find, or None."""
    logic = before(model, LOGIC)
    after = record(program, LOGIC)
    found = compare(logic, after, rule_for(logic, after, GROWTH)).first
    if found is not None:
        return found.quantity, found.step
    ours, theirs = before(model, DTYPES), record(program, DTYPES)
    one, other = ours.processes[0].census, theirs.processes[0].census
    assert one and other
    rows = compare_census(one, other, "O1")
    return (CENSUS, 0) if any(row.kind == "fault" for row in rows) else None


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_is_found_and_named(fault: Fault, model: str) -> None:
    """Each fault shows first in its own quantity, at the step where it first acts."""
    found = first_finding(model, fault.seed(native_program(model)))
    if model in fault.models:
        assert found == (fault.quantity, fault.step)
    else:
        assert found is None


CORRECT = {
    "as migrated": (),
    "clip in another order": (("clip_grad_norm_(params,", "clip_grad_norm_(params[::-1],"),),
    "growth interval for two backwards": (("GradScaler()", "GradScaler(growth_interval=1000)"),),
    "new spelling": (
        ("torch.cuda.amp.GradScaler()", 'torch.amp.GradScaler("cuda")'),
        ("torch.cuda.amp.autocast()", 'torch.amp.autocast("cuda")'),
    ),
    "zero_grad of the modules": (
        (
            "    opt_body.zero_grad()\n    opt_head.zero_grad()\n",
            "    body.zero_grad(); head.zero_grad()\n",
        ),
    ),
    "optimizers unscaled in another order": (
        (
            "    scaler.unscale_(opt_body)\n    scaler.unscale_(opt_head)\n",
            "    scaler.unscale_(opt_head)\n    scaler.unscale_(opt_body)\n",
        ),
    ),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", CORRECT)
def test_correct_migration_raises_no_alarm(name: str, model: str) -> None:
    """Nothing is found in correct migrations, however they are spelled."""
    program = native_program(model)
    for old, new in CORRECT[name]:
        program = replaced(program, old, new)
    assert first_finding(model, program) is None


@pytest.mark.parametrize("model", MODELS)
def test_correct_migration_is_exact_with_casts(model: str) -> None:
    """fp16 casts change no bit between Apex O1 and native AMP."""
    apex = before(model, NUMERIC)
    native = record(native_program(model), NUMERIC)
    assert compare(apex, native, rule_for(apex, native, None)).exact


@pytest.mark.parametrize("model", MODELS)
def test_overflow_in_one_of_two_optimizers(model: str) -> None:
    """Apex skips both optimizers, GradScaler only the one: a real difference, at that step."""
    spoiled = "        if step == 9 and micro == 0: opt_head.param_groups[0]['params'][0].grad[0] = torch.inf\n"
    apex = replaced(
        apex_program(model),
        "            scaled_loss.backward()\n",
        "            scaled_loss.backward()\n    " + spoiled,
    )
    native = replaced(
        native_program(model),
        "        scaler.scale(loss).backward()\n",
        "        scaler.scale(loss).backward()\n" + spoiled,
    )
    one, other = record(apex, LOGIC), record(native, LOGIC)
    first = compare(one, other, rule_for(one, other, GROWTH)).first
    assert first is not None
    assert (first.quantity, first.step) == ("skipped steps", 10)


def test_backward_inside_autocast_where_it_matters() -> None:
    """A backward formula that multiplies matrices in fp32 runs in fp16 under autocast."""
    plain = "loss = F.cross_entropy(head(body(x)), y) / 2\n"
    solving = (
        "out = torch.linalg.solve(torch.eye(4) + head.weight[:, :4], head(body(x)).float().t()); "
        "loss = F.cross_entropy(out.t(), y) / 2\n"
    )
    apex, native = apex_program("mlp"), native_program("mlp")
    ours = record(replaced(apex, plain, solving), DTYPES).processes[0].census
    right = replaced(native, plain, solving)
    wrong = replaced(right, "        scaler.scale(loss)", "            scaler.scale(loss)")
    for program, kinds in ((right, []), (wrong, ["fault"])):
        theirs = record(program, DTYPES).processes[0].census
        assert ours and theirs
        rows = compare_census(ours, theirs, "O1")
        assert sorted({row.kind for row in rows}) == kinds


def test_products_that_apex_does_not_patch() -> None:
    """`torch.einsum` of fp32 tensors stays fp32 under Apex: a difference of the cast lists, no fault."""
    plain = "loss = F.cross_entropy(head(body(x)), y) / 2\n"
    mixing = (
        "mixed = torch.einsum('ij,bj->bi', torch.eye(4), x[:, :4]).sum() * head.weight.float().sum(); "
        "loss = F.cross_entropy(head(body(x)), y) / 2 + 1e-3 * mixed\n"
    )
    one = record(replaced(apex_program("mlp"), plain, mixing), DTYPES).processes[0].census
    other = record(replaced(native_program("mlp"), plain, mixing), DTYPES).processes[0].census
    assert one and other
    rows = compare_census(one, other, "O1")
    assert [(row.operator, row.phase, row.kind) for row in rows] == [
        ("einsum", "forward", "policy")
    ]


def test_log_probabilities_of_a_cross_entropy_are_told_from_others() -> None:
    """Autocast on CUDA leaves the ones inside `F.cross_entropy` in the dtype of its input."""
    counted = record(apex_program("mlp"), DTYPES).processes[0].census
    assert counted and {operator for operator, _, _ in counted} >= {
        "cross_entropy",
        "nll_loss_forward",
    }
    assert "_log_softmax" not in {operator for operator, _, _ in counted}
