"""Layer and RMS normalization under Apex's names, computed by torch."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import torch
import torch.nn.functional as F

Shape = int | Sequence[int]


class FusedLayerNormAffineFunction:
    """Layer normalization with weights; a function to register casts on."""

    @staticmethod
    def apply(
        input: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        normalized_shape: Shape,
        eps: float = 1e-6,
        memory_efficient: bool = False,
    ) -> torch.Tensor:
        """Normalize the last dimensions; looked up in torch, so O1 makes it fp32."""
        return F.layer_norm(input, as_shape(normalized_shape), weight, bias, eps)


class FusedLayerNormFunction:
    """Layer normalization without weights."""

    @staticmethod
    def apply(
        input: torch.Tensor,
        normalized_shape: Shape,
        eps: float = 1e-6,
        memory_efficient: bool = False,
    ) -> torch.Tensor:
        """Normalize the last dimensions."""
        return F.layer_norm(input, as_shape(normalized_shape), None, None, eps)


def as_shape(shape: Shape) -> list[int]:
    """A normalized shape as a list."""
    return [int(shape)] if isinstance(shape, (int, Integral)) else list(shape)


def fused_layer_norm(
    input: torch.Tensor, normalized_shape: Shape, eps: float = 1e-6, memory_efficient: bool = False
) -> torch.Tensor:
    """Layer normalization without weights; note the default `eps`."""
    return FusedLayerNormFunction.apply(input, normalized_shape, eps)


def fused_layer_norm_affine(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    normalized_shape: Shape,
    eps: float = 1e-6,
    memory_efficient: bool = False,
) -> torch.Tensor:
    """Layer normalization with weights; note the default `eps`."""
    return FusedLayerNormAffineFunction.apply(input, weight, bias, normalized_shape, eps)


def mixed_dtype_fused_layer_norm_affine(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    normalized_shape: Shape,
    eps: float = 1e-6,
    memory_efficient: bool = False,
) -> torch.Tensor:
    """Layer normalization in fp32 with the result in the weight's dtype."""
    shape = as_shape(normalized_shape)
    return F.layer_norm(input.float(), shape, weight.float(), bias.float(), eps).to(weight.dtype)


def fused_rms_norm(
    input: torch.Tensor, normalized_shape: Shape, eps: float = 1e-6, memory_efficient: bool = False
) -> torch.Tensor:
    """RMS normalization without weights."""
    dims = tuple(range(-len(as_shape(normalized_shape)), 0))
    mean_square = input.float().pow(2).mean(dims, keepdim=True)
    return input * torch.rsqrt(mean_square + eps)


def fused_rms_norm_affine(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    normalized_shape: Shape,
    eps: float = 1e-6,
    memory_efficient: bool = False,
) -> torch.Tensor:
    """RMS normalization times the weight, in the weight's dtype if that is half."""
    output = fused_rms_norm(input, normalized_shape, eps)
    if weight is None:
        return output
    if weight.dtype in (torch.float16, torch.bfloat16):
        output = output.to(weight.dtype)
    return weight * output


class _Normalization(torch.nn.Module):
    """What both have: a shape, an eps and, unless they are off, parameters of that shape."""

    weight: torch.nn.Parameter | None
    fills: ClassVar = {"weight": 1.0}

    def __init__(
        self,
        normalized_shape: Shape,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        self.normalized_shape = tuple(as_shape(normalized_shape))
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.memory_efficient = memory_efficient
        for name in self.fills:
            filled = torch.nn.Parameter(torch.empty(self.normalized_shape))
            self.register_parameter(name, filled if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        for name, parameter in self.named_parameters():
            torch.nn.init.constant_(parameter, self.fills[name])

    def extra_repr(self) -> str:
        """Shape, eps and whether there are weights."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class _Mixed(_Normalization):
    """One whose result has the parameters' dtype; always with weights."""

    def __init__(
        self,
        normalized_shape: Shape,
        eps: float = 1e-5,
        *,
        memory_efficient: bool = False,
        elementwise_affine: bool = True,
    ) -> None:
        if not elementwise_affine:
            name = type(self).__name__
            raise RuntimeError(f"{name} does not support `elementwise_affine = False`")
        super().__init__(normalized_shape, eps, True, memory_efficient)


class FusedLayerNorm(_Normalization):
    """Same parameters and state dict as torch.nn.LayerNorm."""

    bias: torch.nn.Parameter | None
    fills: ClassVar = {"weight": 1.0, "bias": 0.0}

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalize the last dimensions of `input`."""
        return fused_layer_norm_affine(
            input, self.weight, self.bias, self.normalized_shape, self.eps
        )


class MixedFusedLayerNorm(_Mixed, FusedLayerNorm):
    """Layer normalization whose result has the parameters' dtype; always with weights."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalize the last dimensions of `input`."""
        weight: Any = self.weight
        bias: Any = self.bias
        return mixed_dtype_fused_layer_norm_affine(
            input, weight, bias, self.normalized_shape, self.eps
        )


class FusedRMSNorm(_Normalization):
    """RMS normalization; `eps` is 1e-5 where torch.nn.RMSNorm takes the dtype's."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalize the last dimensions of `input`."""
        return fused_rms_norm_affine(input, self.weight, self.normalized_shape, self.eps)


class MixedFusedRMSNorm(_Mixed, FusedRMSNorm):
    """RMS normalization whose result has the parameters' dtype; always with weights."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalize the last dimensions of `input`."""
        weight: Any = self.weight
        output = fused_rms_norm_affine(
            input.float(), weight.float(), self.normalized_shape, self.eps
        )
        return output.to(weight.dtype)
