"""Binary cross entropy on probabilities, which stays outside of autocast."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.autocast import bce
from amp_migrate.plan.cannot import Cannot
from tests.placement.training import BACKWARD, PATH, Training, looped

IMPORT = "import torch.nn.functional as F\n"
LAST = f"{BACKWARD}optimizer.step()\n"

MEANT: dict[str, tuple[str, str, bool]] = {
    "the function": ("", "F.binary_cross_entropy(y, t)", True),
    "with logits": ("", "F.binary_cross_entropy_with_logits(y, t)", False),
    "made and called": ("", "nn.BCELoss()(y, t)", True),
    "kept": ("c = nn.BCELoss()\n", "c(y, t)", True),
    "kept on a device": ("c = nn.BCELoss().cuda()\n", "c(y, t)", True),
    "kept with logits": ("c = nn.BCEWithLogitsLoss()\n", "c(y, t)", False),
    "another loss": ("c = nn.MSELoss()\n", "c(y, t)", False),
    "one of two": ("c = nn.BCELoss() if args.a else nn.MSELoss()\n", "c(y, t)", False),
    "by another name": ("c = nn.BCELoss()\nd = c\n", "d(y, t)", True),
    "an attribute": ("args.c = nn.BCELoss()\n", "args.c(y, t)", True),
    "one's own of that name": ("def binary_cross_entropy(y, t):\n    return y\n", "binary_cross_entropy(y, t)", False),
    "made by a function": ("def make():\n    return nn.BCELoss()\nc = make()\n", "c(y, t)", True),
}  # fmt: skip


def _training(body: str, before: str = "") -> Training:
    return Training(IMPORT + looped(body + LAST, before))


@pytest.mark.parametrize(("before", "text", "found"), MEANT.values(), ids=MEANT)
def test_what_is_binary_cross_entropy(before: str, text: str, found: bool) -> None:
    """The function of torch, and what only ever is its class."""
    training = _training(f"y = model(x)\nt = x\nloss = {text}\n", before)
    call = training.call(PATH, text)
    assert bce.is_bce(training.made, training.project.modules[PATH], call.func) is found


def test_what_may_be_binary_cross_entropy() -> None:
    """One of two classes may be it."""
    training = _training(
        "y = model(x)\nloss = c(y, x)\n", "c = nn.BCELoss() if args.a else nn.MSELoss()\n"
    )
    func = training.call(PATH, "c(y, x)").func
    module = training.project.modules[PATH]
    assert bce.is_bce(training.made, module, func, maybe=True)
    assert not bce.is_bce(training.made, module, training.call(PATH, "model(x)").func, maybe=True)


Kept = list[tuple[str, bool, bool]]
CASES: dict[str, tuple[str, list[list[str]], Kept]] = {
    "behind the network": (
        "y = model(x)\nloss = F.binary_cross_entropy(y, x)\n",
        [["y = model(x)"]], [("F.binary_cross_entropy(y, x)", False, False)],
    ),
    "with what follows": (
        "y = model(x)\nloss = F.binary_cross_entropy(y, x)\nloss = loss / 2\n",
        [["y = model(x)"]], [("F.binary_cross_entropy(y, x)", False, False)],
    ),
    "a forward behind it": (
        "y = model(x)\nloss = F.binary_cross_entropy(y, x)\nloss = loss + model(x).mean()\n",
        [["y = model(x)", "loss = F.binary_cross_entropy(y, x)", "loss = loss + model(x).mean()"]],
        [("F.binary_cross_entropy(y, x)", True, False)],
    ),
    "a forward in it": (
        "loss = F.binary_cross_entropy(model(x), x)\n",
        [["loss = F.binary_cross_entropy(model(x), x)"]],
        [("F.binary_cross_entropy(model(x), x)", True, True)],
    ),
    "another loss beside it": (
        "y = model(x)\nloss = F.binary_cross_entropy(y, x) + F.mse_loss(y, x)\n",
        [["y = model(x)", "loss = F.binary_cross_entropy(y, x) + F.mse_loss(y, x)"]],
        [("F.binary_cross_entropy(y, x)", True, False)],
    ),
    "two of them": (
        "y = model(x)\na = F.binary_cross_entropy(y, x)\nloss = a + F.binary_cross_entropy(y, -x)\n",
        [["y = model(x)"]],
        [("F.binary_cross_entropy(y, x)", False, False), ("F.binary_cross_entropy(y, -x)", False, False)],
    ),
    "none": (
        "y = model(x)\nloss = F.mse_loss(y, x)\n", [["y = model(x)", "loss = F.mse_loss(y, x)"]], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "regions", "kept"), CASES.values(), ids=CASES)
def test_regions_without_binary_cross_entropy(
    body: str, regions: list[list[str]], kept: Kept
) -> None:
    """A region ends before it where only the loss follows; else it gets one of its own that is off."""
    training = _training(body)
    found = [[training.first_line(s) for s in r.statements()] for r in training.unit.regions]
    assert found == regions
    entropies = training.context.entropies
    assert [(ast.unparse(e.call), e.inside, e.computed) for e in entropies] == kept


@pytest.mark.parametrize(
    "body",
    [
        "loss = F.binary_cross_entropy(model(x), x) if args.a else model(x).mean()\n",
        "loss = args.a and F.binary_cross_entropy(model(x), x)\n",
        "loss = sum([F.binary_cross_entropy(model(z), z) for z in x])\n",
        "y = model(x)\nloss = F.binary_cross_entropy(y, x) + model(x).mean()\n",
    ],
)
def test_forward_that_cannot_run_before_it_is_refused(body: str) -> None:
    """A network that runs in the statement, and not always or not alone, needs a statement of its own."""
    with pytest.raises(Cannot) as caught:
        _ = _training(body).context
    assert caught.value.code == "AMP904"
