"""Steps of a FusedAdam that clips, where it is not known whether, or by what, they clip."""

from __future__ import annotations

import pytest

from amp_migrate.engine import migrate
from amp_migrate.plan.model import Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

_START = """
import torch
from apex.optimizers import FP16_Optimizer, FusedAdam

def update(optimizer):
    optimizer.step()

def main(args, model, other, batches, norm):
"""
_WRAPPED = """
    if args.fp16:
        model.half()
        optimizer = FusedAdam(model.parameters(), lr=1e-3, max_grad_norm=1.0)
        optimizer = FP16_Optimizer(optimizer, dynamic_loss_scale=True)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    fp16 = args.fp16
    for batch in batches:
        loss = model(batch)
        if fp16:
            optimizer.backward(loss)
        else:
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
_ALWAYS = """
    model.half()
    optimizer = FP16_Optimizer(FusedAdam({}), dynamic_loss_scale=True)
    for batch in batches:
        optimizer.zero_grad()
        optimizer.backward(model(batch))
        optimizer.step()
"""
_UNKNOWN = "which of them it is is not known here"

REFUSED = {
    "the_flag_is_set_later": (
        _WRAPPED.replace(
            "        optimizer.step", "        args.fp16 = False\n        optimizer.step"
        ),
        _UNKNOWN,
    ),
    "the_helper_steps_another_optimizer_too": (
        _ALWAYS.format("model.parameters(), max_grad_norm=1.0").replace(
            "optimizer.step()", "update(optimizer)"
        )
        + "        update(sgd)\n"
        + "    sgd = torch.optim.SGD(other.parameters(), lr=1e-3)\n",
        _UNKNOWN,
    ),
    "another_optimizer_takes_the_name": (
        _WRAPPED.replace(
            "    fp16 = args.fp16",
            "    if args.sgd:\n        optimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
            "    fp16 = args.fp16",
        ),
        _UNKNOWN,
    ),
    "the_norm_is_set_later": (
        _ALWAYS.format("model.parameters(), max_grad_norm=norm") + "        norm = norm / 2\n",
        "FusedAdam clips by `norm` in this step",
    ),
    "the_norm_is_computed": (
        _ALWAYS.format("model.parameters(), max_grad_norm=args.norm()"),
        "FusedAdam clips by `args.norm()` in this step",
    ),
    "a_group_has_a_norm": (
        _ALWAYS.format(
            '[{"params": model.parameters(), "max_grad_norm": 2.0}], max_grad_norm=norm'
        ),
        "a group of parameters is given a norm of its own",
    ),
    "arguments_by_their_places": (
        _ALWAYS.format("model.parameters(), 1e-3, True, (0.9, 0.99), 1e-8, False, 0.0, 1.0"),
        "the arguments of this FusedAdam cannot be read",
    ),
    "arguments_of_a_dictionary": (
        _ALWAYS.format("model.parameters(), **args.adam"),
        "the arguments of this FusedAdam cannot be read",
    ),
}


@pytest.mark.parametrize(("body", "why"), REFUSED.values(), ids=REFUSED)
def test_a_step_that_may_clip_otherwise_is_left(body: str, why: str) -> None:
    """The training stays, and the finding says what is not known."""
    result = migrate([Source.from_bytes("train.py", (_START + body).encode())], Settings())

    left = [f.message for f in result.plan.findings() if f.status is Status.LEFT]
    assert any(why in message for message in left), left
    assert [outcome.after for outcome in result.outcomes] == [None]


def test_trainings_of_one_network_clip_each_by_its_norm() -> None:
    """A function makes the networks of both, and one of them has another optimizer by a flag."""
    made = "    model = build()\n" + _WRAPPED.replace("fp16 = args.fp16\n", "pass\n")
    body = (
        "import torch\nfrom apex.optimizers import FP16_Optimizer, FusedAdam\n\n"
        "def build():\n    return torch.nn.Linear(4, 1)\n\n"
        "def first(args, batches):\n"
        + made.replace("if fp16", "if args.fp16")
        + "\ndef second(batches):\n    model = build()\n"
        + _ALWAYS.format("model.parameters(), max_grad_norm=0.5")
    )

    result = migrate([Source.from_bytes("train.py", body.encode())], Settings())

    (outcome,) = result.outcomes
    assert not [f.message for f in result.plan.findings() if f.status is Status.LEFT]
    clip = 'for group in optimizer.param_groups:\n{}torch.nn.utils.clip_grad_norm_(group["params"], {})'
    first, second = (outcome.after or "").split("def second")
    assert "if args.fp16:\n            " + clip.format(" " * 16, "1.0") in first
    assert "        " + clip.format(" " * 12, "0.5") in second


def test_the_same_programs_migrate_otherwise() -> None:
    """Nothing else in them is what leaves them."""
    for body in (_WRAPPED, _ALWAYS.format("model.parameters(), max_grad_norm=norm")):
        result = migrate([Source.from_bytes("train.py", (_START + body).encode())], Settings())

        assert not [f.message for f in result.plan.findings() if f.status is Status.LEFT]
        (outcome,) = result.outcomes
        assert "for group in optimizer.param_groups:" in (outcome.after or "")


@pytest.mark.parametrize(
    ("given", "told"),
    [("", True), (", bias_correction=True", True), (", bias_correction=False", False)],
)
def test_the_other_bias_correction_of_today_is_told(given: str, told: bool) -> None:
    """Eps and the decay of the weights were part of it in 2019."""
    body = _ALWAYS.format(f"model.parameters(){given}")
    result = migrate([Source.from_bytes("train.py", (_START + body).encode())], Settings())

    notes = [f.message for f in result.plan.findings() if f.status is Status.NOTE]
    assert any("by its bias correction" in note for note in notes) is told
