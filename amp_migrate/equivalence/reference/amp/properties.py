"""The properties of an optimization level and the rules for overriding them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from amp_migrate.equivalence.reference.amp.state import warn_or_raise

_DTYPE_O1 = (
    "O1 inserts casts around Torch functions rather than model weights, so with O1, the model "
    "weights themselves should remain FP32. If you wish to cast the model to a different type, "
    "use opt_level='O2' or 'O3'. cast_model_type was {}"
)
_PATCH = "Currently, patch_torch_functions=True should only be set by selecting opt_level='O1'."
_BATCHNORM_O1 = (
    "With opt_level O1, batchnorm functions are automatically patched to run in FP32, so "
    "keep_batchnorm_fp32 should be None. keep_batchnorm_fp32 was {}"
)
_MASTERS_O1 = (
    "It doesn't make sense to use master_weights with O1. With O1, your model weights themselves "
    "should be FP32."
)


@dataclass(frozen=True)
class Level:
    """Defaults of one optimization level."""

    name: str
    brief: str
    cast_model_type: torch.dtype | None
    patch_torch_functions: bool
    keep_batchnorm_fp32: bool | None
    master_weights: bool | None
    loss_scale: float | str


LEVELS = {
    "O0": Level("O0", "Pure FP32 training.", torch.float32, False, None, False, 1.0),
    "O1": Level(
        "O1",
        "Insert automatic casts around Pytorch functions and Tensor methods.",
        None,
        True,
        None,
        None,
        "dynamic",
    ),
    "O2": Level(
        "O2",
        "FP16 training with FP32 batchnorm and FP32 master weights.",
        torch.float16,
        False,
        True,
        True,
        "dynamic",
    ),
    "O3": Level("O3", "Pure FP16 training.", torch.float16, False, False, False, 1.0),
}


class Properties:
    """The properties in force. `override` applies one user argument, checked against the level."""

    enabled: bool
    opt_level: str | None
    cast_model_type: Any
    patch_torch_functions: bool
    keep_batchnorm_fp32: bool | None
    master_weights: bool | None
    loss_scale: float | str

    def __init__(self) -> None:
        self.enabled = False
        self.opt_level = None
        self.cast_model_type = None
        self.patch_torch_functions = False
        self.keep_batchnorm_fp32 = None
        self.master_weights = None
        self.loss_scale = 1.0

    @property
    def options(self) -> dict[str, Any]:
        """All properties by name."""
        return dict(vars(self))

    def adopt(self, level: Level) -> None:
        """Take over the defaults of `level`."""
        self.enabled = True
        self.opt_level = level.name
        self.cast_model_type = level.cast_model_type
        self.patch_torch_functions = level.patch_torch_functions
        self.keep_batchnorm_fp32 = level.keep_batchnorm_fp32
        self.master_weights = level.master_weights
        self.loss_scale = level.loss_scale

    def override_cast_model_type(self, value: Any) -> None:
        """False turns model casting off; O1 takes nothing but float32 or False."""
        if self.opt_level == "O1" and value is not False and value is not torch.float32:
            warn_or_raise(_DTYPE_O1.format(value))
        self.cast_model_type = value

    def override_patch_torch_functions(self, value: bool) -> None:
        """Only O1 patches functions."""
        if self.opt_level != "O1" and value:
            warn_or_raise(_PATCH)
        self.patch_torch_functions = value

    def override_keep_batchnorm_fp32(self, value: Any) -> None:
        """A bool or "True" / "False"; never with O1."""
        if self.opt_level == "O1":
            warn_or_raise(_BATCHNORM_O1.format(value))
        value = {"True": True, "False": False}.get(value, value)
        assert value is True or value is False, (
            "keep_batchnorm_fp32 must be a boolean, the string 'True' or 'False', or None, "
            f"found keep_batchnorm_fp32={value}"
        )
        self.keep_batchnorm_fp32 = value

    def override_master_weights(self, value: bool) -> None:
        """Not with O1, whose weights are fp32 already."""
        if self.opt_level == "O1":
            warn_or_raise(_MASTERS_O1)
        self.master_weights = value

    def override_loss_scale(self, value: Any) -> None:
        """Take "dynamic" or whatever `float` takes. Raises ValueError on another string."""
        self.loss_scale = value if value == "dynamic" else float(value)
