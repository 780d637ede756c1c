"""Spellings of operations whose result dtype under O1 was recorded from Apex 25.04."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

DTYPES = {
    "h": torch.float16,
    "f": torch.float32,
    "d": torch.float64,
    "b": torch.bfloat16,
}
MODES = ("hh", "ff", "hf", "fh", "dd", "hd", "bb")

Op = Callable[[torch.Tensor, torch.Tensor], Any]

_UNARY = (
    "acos asin cosh erfinv exp expm1 log log10 log2 reciprocal rsqrt sinh tan sum prod std var "
    "norm sqrt tanh sigmoid relu square log1p mean abs neg logsumexp softmax log_softmax cumsum "
    "cumprod cpu"
)
_NEEDS_DIM = {"cumsum", "cumprod", "logsumexp", "softmax", "log_softmax"}
_BINARY = (
    "add sub mul div eq ne lt le gt ge equal atan2 dist dot mm matmul mv pow maximum where inner "
    "vdot cross"
)
_VECTORS = {"dot", "inner", "vdot"}
_OPERATORS = "add sub mul truediv pow matmul eq ne lt le gt ge"
_IN_PLACE = "add mul div sub exp log pow rsqrt reciprocal tan cumsum eq lt atan2 addcmul"
_INPLACE_OPERATORS = "iadd isub imul itruediv ipow"
_LOSSES = (
    "mse_loss l1_loss smooth_l1_loss kl_div hinge_embedding_loss soft_margin_loss "
    "multilabel_soft_margin_loss poisson_nll_loss binary_cross_entropy_with_logits "
    "binary_cross_entropy huber_loss"
)
_ACTIVATIONS = "softplus gelu relu silu elu leaky_relu mish hardtanh normalize softsign"


def _unary(name: str) -> Op:
    args = (1,) if name in _NEEDS_DIM else ()
    return lambda a, b: getattr(torch, name)(a, *args)


def _unary_method(name: str) -> Op:
    args = (1,) if name in _NEEDS_DIM else ()
    return lambda a, b: getattr(a, name)(*args)


def _binary(name: str) -> Op:
    if name == "where":
        return lambda a, b: torch.where(torch.ones(4, 4, dtype=torch.bool), a, b)
    if name in _VECTORS:
        return lambda a, b: getattr(torch, name)(a[0], b[0])
    if name == "mv":
        return lambda a, b: torch.mv(a, b[0])
    if name == "cross":
        return lambda a, b: torch.cross(a[:, :3], b[:, :3], dim=1)
    return lambda a, b: getattr(torch, name)(a, b)


def _binary_method(name: str) -> Op:
    if name in _VECTORS:
        return lambda a, b: getattr(a[0], name)(b[0])
    if name == "mv":
        return lambda a, b: a.mv(b[0])
    return lambda a, b: getattr(a, name)(b)


def _in_place(name: str) -> Op:
    if name == "addcmul":
        return lambda a, b: a.addcmul_(b, b)
    if name == "cumsum":
        return lambda a, b: a.cumsum_(0)
    if name in ("add", "mul", "div", "sub", "eq", "lt", "atan2"):
        return lambda a, b: getattr(a, name + "_")(b)
    if name == "pow":
        return lambda a, b: a.pow_(2)
    return lambda a, b: getattr(a, name + "_")()


def _image(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(1, 1, 4, 4)


CASES: dict[str, Op] = {}
for _name in _UNARY.split():
    if hasattr(torch, _name):
        CASES[f"torch.{_name}(a)"] = _unary(_name)
    CASES[f"a.{_name}()"] = _unary_method(_name)
for _name in _BINARY.split():
    CASES[f"torch.{_name}(a, b)"] = _binary(_name)
    if _name not in ("where", "cross"):
        CASES[f"a.{_name}(b)"] = _binary_method(_name)
for _name in _OPERATORS.split():
    CASES[f"operator.{_name}(a, b)"] = getattr(operator, _name)
for _name in _INPLACE_OPERATORS.split():
    CASES[f"operator.{_name}(a, b)"] = getattr(operator, _name)
for _name in _IN_PLACE.split():
    CASES[f"a.{_name}_"] = _in_place(_name)
for _name in _LOSSES.split():
    CASES[f"F.{_name}(a, b)"] = lambda a, b, name=_name: getattr(F, name)(a, b)
for _name in _ACTIVATIONS.split():
    CASES[f"F.{_name}(a)"] = lambda a, b, name=_name: getattr(F, name)(a)

CASES |= {
    "2 ** a": lambda a, b: 2**a,
    "1 / a": lambda a, b: 1 / a,
    "a * 2": lambda a, b: a * 2,
    "a * zero-dim b": lambda a, b: a * b[0, 0],
    "zero-dim a + b": lambda a, b: a[0, 0] + b,
    "torch.exp_(a)": lambda a, b: torch.exp_(a),
    "torch.rsqrt_(a)": lambda a, b: torch.rsqrt_(a),
    "torch.cat": lambda a, b: torch.cat([a, b]),
    "torch.stack": lambda a, b: torch.stack([a, b]),
    "torch.cat of tuple": lambda a, b: torch.cat((a, b), dim=1),
    "torch.hstack": lambda a, b: torch.hstack([a, b]),
    "torch.addmm": lambda a, b: torch.addmm(a, a, b),
    "torch.addmv": lambda a, b: torch.addmv(a[0], a, b[0]),
    "torch.addr": lambda a, b: torch.addr(a, a[0], b[0]),
    "torch.addcmul": lambda a, b: torch.addcmul(a, a, b),
    "torch.addcdiv": lambda a, b: torch.addcdiv(a, a, b),
    "torch.bmm": lambda a, b: torch.bmm(a[None], b[None]),
    "torch.baddbmm": lambda a, b: torch.baddbmm(a[None], a[None], b[None]),
    "torch.addbmm": lambda a, b: torch.addbmm(a, a[None], b[None]),
    "a.bmm": lambda a, b: a[None].bmm(b[None]),
    "torch.renorm": lambda a, b: torch.renorm(a, 2, 0, 1.0),
    "torch.einsum": lambda a, b: torch.einsum("ij,jk->ik", a, b),
    "torch.tensordot": lambda a, b: torch.tensordot(a, b, 1),
    "torch.layer_norm": lambda a, b: torch.layer_norm(a, [4]),
    "torch.prelu": lambda a, b: torch.prelu(a, b[0, :1]),
    "torch.conv2d": lambda a, b: torch.conv2d(_image(a), _image(b)),
    "torch.bilinear": lambda a, b: torch.bilinear(a, a, b.reshape(1, 4, 4), None),
    "F.linear": lambda a, b: F.linear(a, b),
    "F.linear with bias": lambda a, b: F.linear(a, b, bias=a[0]),
    "F.conv1d": lambda a, b: F.conv1d(a[None], b[None]),
    "F.conv2d": lambda a, b: F.conv2d(_image(a), weight=_image(b)),
    "F.conv_transpose2d": lambda a, b: F.conv_transpose2d(_image(a), _image(b)),
    "F.conv3d": lambda a, b: F.conv3d(_image(a)[None], _image(b)[None]),
    "F.conv_tbc": lambda a, b: F.conv_tbc(a[:, None], b[None], a[0]),
    "F.prelu": lambda a, b: F.prelu(a, b[0, :1]),
    "F.bilinear": lambda a, b: F.bilinear(a, a, b.reshape(1, 4, 4)),
    "F.softmax": lambda a, b: F.softmax(a, -1),
    "F.log_softmax": lambda a, b: F.log_softmax(a, -1),
    "F.softmin": lambda a, b: F.softmin(a, -1),
    "F.layer_norm": lambda a, b: F.layer_norm(a, (4,), b[0], b[1]),
    "F.group_norm": lambda a, b: F.group_norm(a, 2, b[0], b[1]),
    "F.batch_norm": lambda a, b: F.batch_norm(a, None, None, b[0], b[1], True),
    "F.local_response_norm": lambda a, b: F.local_response_norm(_image(a), 2),
    "F.cosine_similarity": lambda a, b: F.cosine_similarity(a, b),
    "F.cross_entropy": lambda a, b: F.cross_entropy(a, torch.arange(4)),
    "F.cross_entropy of probabilities": lambda a, b: F.cross_entropy(a, b),
    "F.nll_loss": lambda a, b: F.nll_loss(a, torch.arange(4)),
    "F.multi_margin_loss": lambda a, b: F.multi_margin_loss(a, torch.arange(4)),
    "F.multilabel_margin_loss": lambda a, b: F.multilabel_margin_loss(
        a, torch.arange(4).expand(4, 4)
    ),
    "F.margin_ranking_loss": lambda a, b: F.margin_ranking_loss(a, b, torch.ones(4, 4)),
    "F.cosine_embedding_loss": lambda a, b: F.cosine_embedding_loss(a, b, torch.ones(4)),
    "F.triplet_margin_loss": lambda a, b: F.triplet_margin_loss(a, b, a + 1),
    "F.interpolate": lambda a, b: F.interpolate(_image(a), scale_factor=2),
    "F.interpolate bilinear": lambda a, b: F.interpolate(
        _image(a), scale_factor=2, mode="bilinear", align_corners=False
    ),
    "F.grid_sample": lambda a, b: F.grid_sample(
        _image(a), b.reshape(1, 2, 4, 2), align_corners=False
    ),
    "F.embedding": lambda a, b: F.embedding(torch.arange(4), a),
    "F.max_pool2d": lambda a, b: F.max_pool2d(_image(a), 2),
    "F.dropout": lambda a, b: F.dropout(a, 0.5, training=False),
    "F.scaled_dot_product_attention": lambda a, b: F.scaled_dot_product_attention(
        _image(a), _image(b), _image(b)
    ),
    "a.to('cpu')": lambda a, b: a.to("cpu"),
    "a.sum(dim=0, keepdim=True)": lambda a, b: a.sum(dim=0, keepdim=True),
    "a.norm(p=1, dim=0)": lambda a, b: a.norm(p=1, dim=0),
    "torch.linalg.norm": lambda a, b: torch.linalg.norm(a),
}


def operands(mode: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Two matrices of shape (4, 4) with values between 0.1 and 0.9, in the dtypes of `mode`."""
    a = torch.linspace(0.1, 0.9, 16).reshape(4, 4)
    b = torch.linspace(0.9, 0.2, 16).reshape(4, 4).sqrt()
    return a.to(DTYPES[mode[0]]), b.to(DTYPES[mode[1]])


def outcome(name: str, mode: str) -> str:
    """The dtype of the result, as of the caller's patches, or the exception's name."""
    a, b = operands(mode)
    try:
        result = CASES[name](a, b)
    except Exception as error:
        return type(error).__name__
    return str(result.dtype) if isinstance(result, torch.Tensor) else type(result).__name__
