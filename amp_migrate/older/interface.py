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
