"""Losses that share one scale and are stepped on in turn, as in a GAN: Apex moves the scale between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from equivalence.forked import forked_launches  # noqa: F401
from equivalence.programs import replaced
from equivalence.test_verify import tree, verify

pytestmark = pytest.mark.usefixtures("forked_launches")

IN_TURN = """
import torch, torch.nn as nn
from apex import amp
torch.manual_seed(0)
critic, generator = nn.Linear(16, 1).cuda(), nn.Linear(16, 16).cuda()
opt_c = torch.optim.SGD(critic.parameters(), lr=1e-5)
opt_g = torch.optim.SGD(generator.parameters(), lr=1e-5)
[critic, generator], [opt_c, opt_g] = amp.initialize([critic, generator], [opt_c, opt_g], opt_level="O1")
for i in range(40):
    real, noise = torch.randn(8, 16).cuda() * 8, torch.randn(8, 16).cuda() * 8
    opt_g.zero_grad()
    loss_g = critic(generator(noise)).pow(2).mean()
    with amp.scale_loss(loss_g, opt_g) as scaled_loss:
        scaled_loss.backward()
    opt_g.step()
    opt_c.zero_grad()
    loss_c = (critic(real) - 1).pow(2).mean()
    with amp.scale_loss(loss_c, opt_c) as scaled_loss:
        scaled_loss.backward()
    opt_c.step()
"""


@pytest.mark.parametrize("own", ["", "amp._amp_state.loss_scalers[0]._loss_scale = 2**18\n"])
def test_one_scale_for_losses_in_turn_is_compared_where_neither_has_to_skip(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the way down from 65536, or what the program writes, Apex skips other steps than GradScaler, no fault of either."""
    source = replaced(IN_TURN, "for i in range(40)", f"{own}for i in range(40)")
    monkeypatch.chdir(tree(tmp_path / "project", source))
    code, report = verify(tmp_path, "--steps", "12", "--inject-overflow", "3")

    assert (code, report["verdict"]["word"]) == (0, "EXACT"), report["verdict"]
    note = next(note for note in report["notes"] if "began at a loss scale of" in note)
    first = float(note.split("loss scale of ")[1].split(" ")[0])
    steps = report["numeric"]["before"]["ranks"][0]["steps"]
    assert first < 65536 and steps[0]["scales"] == [first]
    assert not any(step["attempts"][0]["skipped"] for step in steps)


def test_one_scale_for_losses_in_turn_is_not_moved_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an injected overflow Apex has halved its scale for the next loss already: small gradients round otherwise."""
    small = IN_TURN.replace(".mean()\n", ".mean() * 1e-9\n")
    monkeypatch.chdir(tree(tmp_path / "project", small))
    code, report = verify(tmp_path, "--steps", "8", "--inject-overflow", "3")

    assert (code, report["verdict"]["word"]) == (0, "EXACT"), report["verdict"]
    assert any("without injected overflows" in note for note in report["notes"])
    logic = report["logic"]["before"]["ranks"][0]["steps"]
    assert [step["index"] for step in logic if step["attempts"][0]["skipped"]] == [3]


def test_a_wrong_step_is_still_seen_from_a_smaller_scale(tmp_path: Path) -> None:
    """Beginning lower excuses nothing else: a forward that lost its casts there is named."""
    before = tree(tmp_path / "a", IN_TURN)
    native = replaced(IN_TURN, "from apex import amp\n", "")
    lines = [line for line in native.splitlines() if "amp.initialize" not in line]
    native = "\n".join(lines).replace(
        "for i in range(40):", "scaler = torch.amp.GradScaler()\nfor i in range(40):"
    )
    for loss, optimizer in (("loss_g", "opt_g"), ("loss_c", "opt_c")):
        native = native.replace(
            f"    with amp.scale_loss({loss}, {optimizer}) as scaled_loss:\n        scaled_loss.backward()\n"
            f"    {optimizer}.step()",
            f"    scaler.scale({loss}).backward()\n    scaler.step({optimizer})",
        )
    after = tree(tmp_path / "b", native + "\n    scaler.update()\n")
    code, report = verify(tmp_path, "--before", str(before), "--after", str(after), "--steps", "8")

    assert (code, report["verdict"]["word"]) == (1, "DIFFERENT")
    assert "census" in report["verdict"]["reason"]
    assert report["held_to"] == "casts on: the dtypes of operators"
