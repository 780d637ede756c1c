"""The fp16 weight cache: one cast per fp32 parameter until a scale_loss block ends."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from reference.support import halves, linear, sgd


def _initialized(amp: Any) -> tuple[nn.Linear, torch.optim.Optimizer]:
    layer = linear(1.0)
    optimizer = sgd(layer)
    amp.initialize(layer, optimizer, opt_level="O1", loss_scale=1024.0)
    return layer, optimizer


def test_a_weight_is_cast_once(amp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second forward uses the first one's cast."""
    layer, _ = _initialized(amp)
    casts = []
    half = torch.Tensor.half

    def counted(tensor: torch.Tensor) -> torch.Tensor:
        casts.append(tensor is layer.weight)
        return half(tensor)

    monkeypatch.setattr(torch.Tensor, "half", counted)
    layer(torch.ones(1, 2))
    assert layer.weight in amp._amp_state.handle.cache
    layer(torch.ones(1, 2))
    assert casts.count(True) == 1


def test_the_block_clears_it(amp: Any) -> None:
    """Also with delay_unscale and with scale 1."""
    layer, optimizer = _initialized(amp)
    for delay in (True, False):
        with amp.scale_loss(
            layer(torch.ones(1, 2)).sum(), optimizer, delay_unscale=delay
        ) as scaled:
            assert len(amp._amp_state.handle.cache) == 1
            scaled.backward()
        assert len(amp._amp_state.handle.cache) == 0


def test_the_short_cut_clears_it(amp: Any) -> None:
    """With a static scale of 1 nothing is scaled, but the cache is cleared."""
    layer = linear()
    optimizer = sgd(layer)
    amp.initialize(layer, optimizer, opt_level="O1", loss_scale=1.0)
    with amp.scale_loss(layer(torch.ones(1, 2)).sum(), optimizer) as scaled:
        scaled.backward()
    assert len(amp._amp_state.handle.cache) == 0


def test_evaluation_keeps_stale_weights(amp: Any) -> None:
    """A weight changed in place between two evaluations is not cast again."""
    layer, _ = _initialized(amp)
    with torch.no_grad():
        assert layer(torch.ones(1, 2)).item() == 2.0
        layer.weight.fill_(5.0)
        assert layer(torch.ones(1, 2)).item() == 2.0


def test_training_after_evaluation_casts_anew(amp: Any) -> None:
    """A cast made without gradients does not serve a forward with them."""
    layer, optimizer = _initialized(amp)
    with torch.no_grad():
        layer(torch.ones(1, 2))
        layer.weight.fill_(5.0)
    output = layer(torch.ones(1, 2))
    assert output.item() == 10.0
    with amp.scale_loss(output.sum(), optimizer) as scaled:
        scaled.backward()
    assert layer.weight.grad.tolist() == [[1.0, 1.0]]


def test_evaluation_reuses_the_training_cast(amp: Any) -> None:
    """Without gradients any cast will do."""
    layer, _ = _initialized(amp)
    layer(torch.ones(1, 2))
    with torch.no_grad():
        layer(torch.ones(1, 2))
    assert layer(torch.ones(1, 2)).requires_grad


def test_two_forwards_add_their_gradients_in_fp16(amp: Any) -> None:
    """Both go through one cast: 2048 + 1 is 2048 in fp16."""
    layer, optimizer = _initialized(amp)
    total = layer(torch.full((1, 2), 2.0)).float() + layer(torch.full((1, 2), 2.0**-10)).float()
    with amp.scale_loss(total.sum(), optimizer) as scaled:
        scaled.backward()
    assert layer.weight.grad[0, 0].item() == 2.0


def test_a_foreign_cast_is_an_error(amp: Any) -> None:
    """A cached tensor with gradients must come from its parameter."""
    layer, _ = _initialized(amp)
    layer(torch.ones(1, 2))
    cache = amp._amp_state.handle.cache
    other = nn.Parameter(torch.ones(1, 2))
    layer.weight, old = other, layer.weight
    if isinstance(cache, dict):
        cache[other] = cache[old]
    else:
        cache._casts[other] = cache._casts[old]
    with pytest.raises(RuntimeError, match="not cache"):
        layer(torch.ones(1, 2))


def test_fp16_parameters_are_not_cached(amp: Any) -> None:
    """There is nothing to cast."""
    _initialized(amp)
    F.linear(halves(1, 2), nn.Parameter(halves(3, 2)))
    assert len(amp._amp_state.handle.cache) == 0
