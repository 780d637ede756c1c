"""Which functions O1 patches, by owner and rule."""

from __future__ import annotations

import torch

_CONVOLUTIONS = (
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "conv_tbc",
)

FUNCTIONAL_HALF = (*_CONVOLUTIONS, "linear")

FUNCTIONAL_FLOAT = (
    "interpolate",
    "grid_sample",
    "softplus",
    "softmin",
    "log_softmax",
    "softmax",
    "gelu",
    "layer_norm",
    "group_norm",
    "local_response_norm",
    "normalize",
    "cosine_similarity",
    "poisson_nll_loss",
    "cosine_embedding_loss",
    "cross_entropy",
    "hinge_embedding_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "margin_ranking_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "multi_margin_loss",
    "nll_loss",
    "binary_cross_entropy_with_logits",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "ctc_loss",
)

BANNED = "binary_cross_entropy"
BANNED_MESSAGE = (
    "\namp does not work out-of-the-box with `F.binary_cross_entropy` or `torch.nn.BCELoss.` "
    "Its input must already be fp32.\nUse `torch.nn.BCEWithLogitsLoss` on the logits, or call "
    "`amp.register_float_function(torch, 'sigmoid')` before initializing amp."
)

# Bound in torch.nn.functional at import since torch 1.11, out of reach of a patch on `torch`.
FUNCTIONAL_HALF_REPAIR = "prelu"
FUNCTIONAL_PROMOTE_REPAIR = "bilinear"

TORCH_HALF = (
    *_CONVOLUTIONS,
    "prelu",
    "addmm",
    "addmv",
    "addr",
    "matmul",
    "mm",
    "mv",
    "addbmm",
    "baddbmm",
    "bmm",
)

TORCH_FLOAT = (
    "acos",
    "asin",
    "cosh",
    "erfinv",
    "exp",
    "expm1",
    "log",
    "log10",
    "log2",
    "reciprocal",
    "rsqrt",
    "sinh",
    "tan",
    "pow",
    "cumprod",
    "cumsum",
    "dist",
    "norm",
    "prod",
    "std",
    "sum",
    "var",
    "renorm",
)

TORCH_PROMOTE = (
    "addcdiv",
    "addcmul",
    "atan2",
    "cross",
    "bilinear",
    "dot",
    "add",
    "div",
    "mul",
    "eq",
    "equal",
    "ge",
    "gt",
    "le",
    "lt",
    "ne",
)

SEQUENCE_PROMOTE = ("cat", "stack")

_METHODS_HALF = ("__matmul__",)
_METHODS_FLOAT = ("__ipow__", "__pow__", "__rpow__", "cpu")
_METHODS_PROMOTE = (
    "__add__",
    "__div__",
    "__eq__",
    "__ge__",
    "__gt__",
    "__iadd__",
    "__idiv__",
    "__imul__",
    "__isub__",
    "__itruediv__",
    "__le__",
    "__lt__",
    "__mul__",
    "__ne__",
    "__radd__",
    "__rdiv__",
    "__rmul__",
    "__rsub__",
    "__rtruediv__",
    "__sub__",
    "__truediv__",
)


def _methods(*names: str) -> tuple[str, ...]:
    return tuple(name for name in names if hasattr(torch.Tensor, name))


TENSOR_HALF = _methods(*_METHODS_HALF, *TORCH_HALF)
TENSOR_FLOAT = _methods(*_METHODS_FLOAT, *TORCH_FLOAT)
TENSOR_PROMOTE = _methods(*_METHODS_PROMOTE, *TORCH_PROMOTE)


def in_place(names: tuple[str, ...]) -> tuple[str, ...]:
    """The in-place spellings of `names`."""
    return tuple(name + "_" for name in names)


class Overrides:
    """One of Apex's lists of overrides: what `amp.init` patches of one owner, which a program may change before."""

    def __init__(self, half: tuple[str, ...], full: tuple[str, ...]) -> None:
        self._given = half, full
        self.FP16_FUNCS: list[str] = []
        self.FP32_FUNCS: list[str] = []
        self.reset()

    def reset(self) -> None:
        """Put back what Apex comes with, in the lists that may be held elsewhere."""
        half, full = self._given
        self.FP16_FUNCS[:], self.FP32_FUNCS[:] = half, full


FUNCTIONAL = Overrides(FUNCTIONAL_HALF, FUNCTIONAL_FLOAT)
TORCH = Overrides(TORCH_HALF, TORCH_FLOAT)
TENSOR = Overrides(TENSOR_HALF, TENSOR_FLOAT)
