"""Recurrent networks agree in every bit with casts on, as cuDNN runs them in fp16 under Apex and autocast alike."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from amp_migrate.equivalence.capture.standins import recurrent
from equivalence.forked import forked_launches  # noqa: F401
from equivalence.test_verify import tree, verify

pytestmark = pytest.mark.usefixtures("forked_launches")

TAGGER = """
import torch, torch.nn as nn
import torch.nn.functional as F
from apex import amp
torch.manual_seed(0)

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.layers = nn.KIND(8, 6, num_layers=2, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(12, 20)

    def forward(self, words):
        return self.tags(self.layers(self.words(words))[0])

model = Tagger().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
for _ in range(40):
    words = torch.randint(0, 20, (4, 9)).cuda()
    loss = F.mse_loss(model(words), F.one_hot(words, 20).float())
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_every_bit(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU too, where CPU autocast would have no kernel for the one and keep the other in fp32."""
    monkeypatch.chdir(tree(tmp_path / "project", TAGGER.replace("KIND", kind)))
    code, report = verify(tmp_path)

    assert (code, report["verdict"]["word"]) == (0, "EXACT"), report["verdict"]


def test_packed_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are cast as others are, which CPU autocast would not do."""
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        monkeypatch.setattr(torch._VF, name, getattr(torch._VF, name))
    packed = torch.nn.utils.rnn.pack_sequence([torch.randn(3, 6), torch.randn(2, 6)])
    recurrent.install()
    with torch.autocast("cpu", torch.float16):
        data = torch.nn.GRU(6, 5, bidirectional=True)(packed)[0].data
    assert data.dtype is torch.float16
