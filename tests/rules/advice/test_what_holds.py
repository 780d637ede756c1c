"""What findings say holds at the levels and in the programs that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from amp_migrate.engine import migrate
from amp_migrate.plan.model import Finding, Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

CLIPPED = """\
import sys
import torch
from apex import amp

model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="{level}", loss_scale={scale})
for batch in range(10):
    loss = model(torch.randn(8, 4).cuda()).sum()
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
        torch.nn.utils.clip_grad_norm_({clipped}, 1.0)
    optimizer.step()
"""
HANDLE = """\
import sys
import torch
from apex import amp
from halves import FP16_Optimizer


def train(model, loader):
    handle = amp.init()
    optimizer = FP16_Optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        {backward}
        if handle:
            handle._clear_cache()
        optimizer.step()
        optimizer.zero_grad()
"""


def findings(code: str, text: str) -> list[Finding]:
    """Return the findings of one rule in one file."""
    sources = [Source.from_bytes("train.py", text.encode())]
    found = migrate(sources, Settings(api="torch.cuda.amp")).plan.findings()
    return [item for item in found if item.code == code]


@pytest.mark.parametrize(
    ("level", "clipped", "said"),
    [
        ("O1", "amp.master_params(optimizer)", "clipped scaled gradients"),
        ("O2", "amp.master_params(optimizer)", "clipped nothing"),
        ("O2", "model.parameters()", "clipped scaled gradients"),
    ],
)
def test_master_weights_have_no_gradients_inside_the_block(
    level: str, clipped: str, said: str
) -> None:
    (found,) = findings("AMP207", CLIPPED.format(level=level, scale=None, clipped=clipped))

    assert said in found.message


def test_a_level_that_is_never_chosen_scales_nothing_in_no_run() -> None:
    text = CLIPPED.format(level="O2", scale="float(sys.argv[1])", clipped="model.parameters()")
    messages = [item.message for item in findings("AMP102", text)]

    assert any("is chosen at run time" in message for message in messages)
    assert not any("at O0" in message for message in messages)


def test_an_optimizer_that_scales_itself_is_wrapped_in_no_handle() -> None:
    (wraps,) = findings("AMP909", HANDLE.format(backward="loss.backward()"))
    (itself,) = findings("AMP909", HANDLE.format(backward="optimizer.backward(loss)"))

    assert "wrap_optimizer" in wraps.advice
    assert "wrap_optimizer" not in itself.advice
    assert "`optimizer.backward(loss)` scales the loss itself" in itself.advice


def test_only_the_chain_that_ends_in_an_error_is_said_to() -> None:
    folder = Path(__file__).parents[3] / "fixtures/dual/ways_without_an_error/before"
    sources = [Source.from_bytes(p.name, p.read_bytes()) for p in sorted(folder.iterdir())]
    found = migrate(sources, Settings(api="torch.cuda.amp")).plan.findings()
    notes = {f.path: f.message for f in found if f.code == "AMP114" and f.status is Status.NOTE}

    assert "such a run ends in the error" in notes["wrapping.py"]
    assert "goes on without AMP" in notes["train.py"]


LEVELS = """\
import torch
from apex import amp


def initialize(model, optimizer, opt_level="O1", loss_scale="dynamic"):
    return amp.initialize(model, optimizer, opt_level=opt_level, loss_scale=loss_scale)


def main(args, options):
    model = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = initialize({given})
    for batch in range(10):
        loss = model(torch.randn(8, 4).cuda()).sum()
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("model, optimizer", 0),
        ("model, optimizer, args.level, args.scale", 2),
        ("model, optimizer, loss_scale=args.scale", 1),
        ("model, optimizer, **options", 2),
    ],
)
def test_what_every_call_leaves_to_its_default_is_chosen_by_none(given: str, told: int) -> None:
    messages = [item.message for item in findings("AMP102", LEVELS.format(given=given))]

    assert len([message for message in messages if "is chosen at run time" in message]) == told


HEAD = """

class Head(Detector):
    def __init__(self):
        super().__init__()
        self.fp16_enabled = False

    {kept}def loss(self, logits, y):
        return nn.functional.binary_cross_entropy(logits.sigmoid(), y)

    def forward(self, x, y=None):
        return dict(loss=self.loss(self.head(self.backbone(x)), y))
"""


@pytest.mark.parametrize(
    ("kept", "told"), [("", True), ('@force_fp32(apply_to=("logits",))\n    ', False)]
)
def test_what_the_library_keeps_in_fp32_computes_no_entropy_under_autocast(
    kept: str, told: bool
) -> None:
    folder = Path(__file__).parents[3] / "fixtures/project/mmcv_hook/before"
    texts = {p.name: p.read_text() for p in sorted(folder.iterdir())}
    texts["detector.py"] = (
        "from mmcv.runner import force_fp32\n" + texts["detector.py"] + HEAD.format(kept=kept)
    )
    texts["main.py"] = texts["main.py"].replace("Detector", "Head")
    sources = [Source.from_bytes(name, text.encode()) for name, text in texts.items()]
    found = migrate(sources, Settings(api="torch.cuda.amp")).plan.findings()
    said = [f for f in found if f.code == "AMP120" and "binary cross entropy" in f.message]

    assert bool(said) is told
