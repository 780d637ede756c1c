"""Normalization layers, cross entropy and clipping under Apex's names."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from reference.support import linear, sgd

HALF = torch.float16


def _layer(name: str, *args: Any, **kwargs: Any) -> Any:
    from apex import normalization

    return vars(normalization)[name](*args, **kwargs)


def _randomized(layer: nn.Module) -> nn.Module:
    for param in layer.parameters():
        nn.init.normal_(param)
    return layer


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [6, (3, 6), torch.Size([6])])
def test_layer_norm_is_torchs(shape: Any, affine: bool, amp: Any) -> None:
    """Same parameters, same bits."""
    ours = _randomized(_layer("FusedLayerNorm", shape, elementwise_affine=affine))
    theirs = nn.LayerNorm(shape, eps=1e-5, elementwise_affine=affine)
    theirs.load_state_dict(ours.state_dict())
    inputs = torch.randn(4, 3, 6)
    assert torch.equal(ours(inputs), theirs(inputs))


def test_layer_norm_is_fp32_under_o1(amp: Any) -> None:
    """As nn.LayerNorm."""
    layer = _layer("FusedLayerNorm", 4)
    amp.initialize(linear(), opt_level="O1", verbosity=0)
    assert layer(torch.ones(2, 4, dtype=HALF)).dtype == torch.float32


def test_casts_can_be_registered_on_the_function(amp: Any) -> None:
    """`FusedLayerNormAffineFunction.apply` is what the layer calls."""
    from apex.normalization.fused_layer_norm import (
        FusedLayerNormAffineFunction,
        fused_layer_norm_affine,
    )

    seen = []
    original = FusedLayerNormAffineFunction.apply

    class Spy(FusedLayerNormAffineFunction):
        @staticmethod
        def apply(input: torch.Tensor, *args: Any) -> torch.Tensor:
            seen.append(input.dtype)
            return original(input, *args)

    FusedLayerNormAffineFunction.apply = Spy.apply
    amp.register_float_function(FusedLayerNormAffineFunction, "apply")
    amp.initialize(linear(), opt_level="O1", verbosity=0)
    try:
        fused_layer_norm_affine(torch.ones(2, 4, dtype=HALF), torch.ones(4), torch.ones(4), 4)
    finally:
        amp._amp_state.handle._deactivate()
        FusedLayerNormAffineFunction.apply = staticmethod(original)
    assert seen == [torch.float32]


@pytest.mark.parametrize("weight", [torch.float16, torch.float32])
@pytest.mark.parametrize("inputs", [torch.float16, torch.float32])
def test_mixed_norms_return_the_weights_dtype(
    weight: torch.dtype, inputs: torch.dtype, amp: Any
) -> None:
    """Whatever comes in."""
    for name in ("MixedFusedLayerNorm", "MixedFusedRMSNorm"):
        layer = _layer(name, 4).to(weight)
        assert layer(torch.ones(2, 4, dtype=inputs)).dtype == weight
    with pytest.raises(RuntimeError, match="elementwise_affine"):
        _layer("MixedFusedLayerNorm", 4, elementwise_affine=False)


@pytest.mark.parametrize("affine", [True, False])
def test_rms_norm(affine: bool, amp: Any) -> None:
    """As nn.RMSNorm with eps=1e-5, whose default differs on small inputs."""
    ours = _randomized(_layer("FusedRMSNorm", 6, elementwise_affine=affine))
    inputs = torch.randn(4, 6) * 1e-3
    weight = ours.weight if affine else None
    torch.testing.assert_close(ours(inputs), F.rms_norm(inputs, [6], weight, eps=1e-5))
    assert (ours(inputs) - F.rms_norm(inputs, [6], weight)).abs().max() > 0.1


def test_rms_norm_follows_half_weights(amp: Any) -> None:
    """fp32 inside, the weight's dtype outside."""
    layer = _layer("FusedRMSNorm", 4).half()
    assert layer(torch.full((2, 4), 300.0, dtype=HALF)).tolist() == [[1.0] * 4] * 2


def test_functional_norms_have_another_eps(amp: Any) -> None:
    """1e-6 instead of the layers' 1e-5."""
    from apex.normalization import fused_layer_norm as functions

    inputs = torch.randn(2, 4) * 1e-3
    weight, bias = torch.ones(4), torch.zeros(4)
    expected = F.layer_norm(inputs, [4], eps=1e-6)
    assert torch.equal(functions.fused_layer_norm(inputs, 4), expected)
    assert torch.equal(functions.fused_layer_norm_affine(inputs, weight, bias, (4,)), expected)
    rms = F.rms_norm(inputs, [4], eps=1e-6)
    torch.testing.assert_close(functions.fused_rms_norm(inputs, 4), rms)
    torch.testing.assert_close(functions.fused_rms_norm_affine(inputs, weight, 4), rms)


class TestCrossEntropy:
    """contrib.xentropy."""

    def _losses(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        from apex.contrib.xentropy import SoftmaxCrossEntropyLoss

        losses: torch.Tensor = SoftmaxCrossEntropyLoss.apply(*args, **kwargs)
        return losses

    @pytest.mark.parametrize("smoothing", [0.0, 0.1])
    def test_formula(self, smoothing: float, amp: Any) -> None:
        """Smoothing spreads over all classes."""
        logits = torch.randn(5, 7)
        labels = torch.tensor([1, 2, 3, 4, 5])
        logs = logits.log_softmax(-1)
        hit = logs[torch.arange(5), labels]
        expected = -(1 - smoothing) * hit - smoothing * logs.mean(-1)
        torch.testing.assert_close(self._losses(logits, labels, smoothing), expected)

    def test_label_zero_is_padding(self, amp: Any) -> None:
        """Unless another index is given."""
        logits, labels = torch.randn(2, 3), torch.tensor([0, 1])
        assert (self._losses(logits, labels) == 0).tolist() == [True, False]
        assert (self._losses(logits, labels, padding_idx=1) == 0).tolist() == [False, True]

    def test_dtype(self, amp: Any) -> None:
        """That of the logits, unless widened; gradients follow the logits; also under O1."""
        model = linear()
        amp.initialize(model, sgd(model), opt_level="O1", verbosity=0)
        logits = torch.randn(2, 3).half().requires_grad_()
        labels = torch.tensor([1, 2])
        assert self._losses(logits, labels).dtype == HALF
        widened = self._losses(logits, labels, half_to_float=True)
        assert widened.dtype == torch.float32
        widened.sum().backward()
        assert logits.grad.dtype == HALF


def test_clip_grad_norm(amp: Any) -> None:
    """torch's, for one tensor or several."""
    from apex.contrib.clip_grad import clip_grad_norm_

    param = torch.nn.Parameter(torch.zeros(2))
    param.grad = torch.tensor([3.0, 4.0])
    assert clip_grad_norm_(param, 1.0).item() == 5.0
    assert param.grad.norm().item() == pytest.approx(1.0)
    param.grad = torch.tensor([float("inf"), 0.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        clip_grad_norm_([param], 1.0, error_if_nonfinite=True)
