"""Make CPU autocast follow the operator lists of CUDA autocast.

Without this, ``autocast("cpu")`` keeps softmax, layer_norm, exp, pow, sum and others in fp16, does
not cast mv, addmv and addr, and runs padding, pooling in three dimensions and linear algebra in
fp32. The lists are those of torch's CUDA autocast; operators whose CPU treatment is already the
same are not repeated.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.library import Library, fallthrough_kernel

LOWER = "mv addmv addr lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell linalg_vecdot"
FLOAT32 = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan
pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm group_norm
rms_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim cosine_similarity poisson_nll_loss
cosine_embedding_loss hinge_embedding_loss kl_div huber_loss margin_ranking_loss
soft_margin_loss triplet_margin_loss dist pdist renorm logsumexp
upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d
upsample_trilinear3d upsample_bicubic2d upsample_nearest1d.vec upsample_nearest2d.vec
upsample_nearest3d.vec upsample_linear1d.vec upsample_bilinear2d.vec upsample_trilinear3d.vec
upsample_bicubic2d.vec _upsample_nearest_exact1d _upsample_nearest_exact2d
_upsample_nearest_exact3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa prod prod.dim_int
softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm linalg_matrix_norm.str_ord sum sum.dim_IntList norm.Scalar
norm.ScalarOpt_dim norm.ScalarOpt_dtype norm.ScalarOpt_dim_dtype"""
WIDEST = """addcdiv addcmul atan2 bilinear cross dot vdot tensordot scatter_add grid_sampler
index_put"""
# The CPU casts these to the lower dtype, and CUDA what they are made of. A cross entropy rounds its
# log-probabilities to fp16 on CUDA, which Apex did not; it stays in fp32 here, so that all else can
# be held to every bit.
COMPOSED = """conv1d.padding conv2d.padding conv3d.padding _addmm_activation mkldnn_rnn_layer
_native_multi_head_attention cross_entropy_loss"""

_installed: list[Any] = []


def install() -> None:
    """Register the lists; a second call does nothing."""
    if _installed:
        return
    # The registrations live as long as this object.
    library: Any = Library("aten", "IMPL", "AutocastCPU")  # type: ignore[no-untyped-call]
    _installed.append(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for names, to in ((LOWER, _lower), (FLOAT32, _float32), (WIDEST, _widest)):
            for name in names.split():
                _register(library, name, to)
        for name in on_the_cpu_alone():
            library.impl(name, fallthrough_kernel, allow_override=True)
        library.impl("binary_cross_entropy", _refuse)


@cache
def on_the_cpu_alone() -> tuple[str, ...]:
    """Return the operators that CPU autocast treats and CUDA autocast leaves as they come; to ask all of them takes a while."""
    registered = torch._C._dispatch_has_kernel_for_dispatch_key
    kept = {f"aten::{name}" for name in COMPOSED.split()}
    return tuple(
        name
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
        and name not in kept
        and registered(name, "AutocastCPU")
        and not registered(name, "AutocastCUDA")
    )


def _register(library: Any, name: str, to: Callable[[list[Tensor]], torch.dtype | None]) -> None:
    packet_name, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, packet_name, None)
    if packet is None:  # an operator this torch does not have
        return
    operator = getattr(packet, overload or "default")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        dtype = to(_tensors(args))
        with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
            if dtype is None or kwargs.get("dtype") is not None:
                return operator(*args, **kwargs)
            return operator(*(_cast(value, dtype) for value in args), **kwargs)

    library.impl(name, kernel, allow_override=True)


_AUTOCAST = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)


def _tensors(args: Any) -> list[Tensor]:
    found = []
    for value in args:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(_tensors(value))
    return found


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, Tensor):
        eligible = value.is_floating_point() and value.dtype != torch.float64
        return value.to(dtype) if eligible else value
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(one, dtype) for one in value)
    return value


def _lower(tensors: list[Tensor]) -> torch.dtype:
    return torch.get_autocast_dtype("cpu")


def _float32(tensors: list[Tensor]) -> torch.dtype:
    return torch.float32


def _widest(tensors: list[Tensor]) -> torch.dtype | None:
    kinds = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    return torch.float32 if len(kinds) > 1 and torch.float64 not in kinds else None


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast, "
        "and CUDA autocast refuses them; use binary_cross_entropy_with_logits, or switch "
        "autocast off around them"
    )
