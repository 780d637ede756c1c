"""The two classes named `FP16_Optimizer`, and what each of them has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, eq=False)
class Interface:
    """A class named FP16_Optimizer: `has` its attributes, by what they are in that of `apex.fp16_utils`.

    `fused`: gradients stay scaled, and in fp16, until a FusedAdam of its own steps with them.
    """

    package: str
    has: Mapping[str, str]
    backward: tuple[str, ...]
    fused: bool


_BOTH = ("backward", "zero_grad", "step", "param_groups", "state", "state_dict", "load_state_dict", "optimizer")  # fmt: skip
_MORE = ("update_master_grads", "clip_master_grads", "loss_scale", "overflow", "add_param_group", "defaults")  # fmt: skip
ALONE = frozenset({
    "all_fp16_params", "all_fp32_from_fp16_params", "all_fp32_from_fp32_params", "cur_iter", "cur_scale", "dynamic_loss_scale",
    "first_closure_call_this_step", "fp16_groups", "fp16_groups_flat", "fp32_from_fp16_groups", "fp32_from_fp32_groups",
    "fp32_groups", "fp32_groups_flat", "inspect_master_grad_data", "last_overflow_iter", "loss_scaler", "maybe_print",
    "scale_factor", "scale_window", "verbose", *_BOTH, *_MORE,
})  # fmt: skip
"""What one of the classes has. Whatever else is asked of an optimizer, it is one that is not wrapped that answers."""

FP16_UTILS = Interface(
    "apex.fp16_utils",
    MappingProxyType({name: name for name in (*_BOTH, *_MORE)}),
    ("loss", "update_master_grads", "retain_graph"),
    fused=False,
)
FUSED = Interface(
    "apex.optimizers",
    MappingProxyType({**{name: name for name in _BOTH}, "cur_scale": "loss_scale"}),
    ("loss",),
    fused=True,
)
