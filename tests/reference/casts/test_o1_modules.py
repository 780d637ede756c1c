"""Layers that need care under O1: recurrent ones, attention, PReLU, modules called twice."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from reference.support import halves, linear

HALF = torch.float16
FLOAT = torch.float32


@pytest.fixture(autouse=True)
def _initialized(amp: Any) -> None:
    amp.initialize(linear(), opt_level="O1")


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_layers(kind: Any, bidirectional: bool) -> None:
    """They run in fp16 on fp16 and fp32 inputs, and their fp32 weights get fp32 gradients."""
    layer = kind(4, 3, num_layers=2, bidirectional=bidirectional)
    for inputs in (torch.ones(5, 2, 4), halves(5, 2, 4)):
        layer.zero_grad()
        output, _ = layer(inputs)
        assert output.dtype == HALF
        output.float().sum().backward()
        assert {p.grad.dtype for p in layer.parameters()} == {FLOAT}
        assert all(bool(p.grad.abs().sum() > 0) for p in layer.parameters())


def test_relu_rnn() -> None:
    """The other non-linearity."""
    assert nn.RNN(4, 3, nonlinearity="relu")(torch.ones(5, 2, 4))[0].dtype == HALF


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers_compute_what_fp16_layers_do(kind: Any) -> None:
    """The cast weights in their order."""
    layer = kind(4, 3, num_layers=2)
    inputs = torch.randn(5, 2, 4)
    output, _ = layer(inputs)
    twin = kind(4, 3, num_layers=2).half()
    twin.load_state_dict(layer.state_dict())
    assert torch.equal(twin(inputs.half())[0], output)


def test_packed_sequences() -> None:
    """And hidden states given by the user."""
    packed = nn.utils.rnn.pack_sequence([torch.ones(3, 4), torch.ones(2, 4)])
    state = (torch.zeros(1, 2, 3), torch.zeros(1, 2, 3))
    output, (hidden, _) = nn.LSTM(4, 3)(packed, state)
    assert output.data.dtype == hidden.dtype == HALF


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_recurrent_cells(kind: Any, amp: Any) -> None:
    """Their weights go through the cache."""
    cell = kind(4, 3)
    hidden = cell(torch.ones(2, 4))
    output = hidden[0] if isinstance(hidden, tuple) else hidden
    assert output.dtype == HALF
    cell(halves(2, 4), hidden)
    assert cell.weight_ih in amp._amp_state.handle.cache


def test_recurrent_layers_in_fp32_without_casts(amp: Any) -> None:
    """disable_casts reaches them."""
    with amp.disable_casts():
        assert nn.LSTM(4, 3)(torch.ones(5, 2, 4))[0].dtype == FLOAT
        assert nn.GRUCell(4, 3)(torch.ones(2, 4)).dtype == FLOAT


def test_multihead_attention() -> None:
    """One weight used three times; softmax in fp32 in between."""
    attention = nn.MultiheadAttention(4, 2)
    output, weights = attention(torch.ones(3, 2, 4), torch.ones(3, 2, 4), torch.ones(3, 2, 4))
    assert output.dtype == HALF
    output.float().sum().backward()
    assert attention.in_proj_weight.grad.dtype == FLOAT
    assert weights.dtype in (HALF, FLOAT)


def test_prelu() -> None:
    """fp16, by the documented repair."""
    assert nn.PReLU()(halves(2, 4)).dtype == HALF


def test_a_module_called_twice() -> None:
    """The cache finds its parent node, by the documented repair."""
    layer = nn.Linear(4, 4)
    layer(layer(torch.ones(2, 4))).float().sum().backward()
    assert layer.weight.grad.dtype == FLOAT
