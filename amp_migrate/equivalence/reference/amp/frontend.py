"""`amp.initialize` and the state dict of the loss scalers."""

from __future__ import annotations

from typing import Any

import torch

from amp_migrate.equivalence.reference.amp.handle import NoOpHandle
from amp_migrate.equivalence.reference.amp.prepare import as_models, as_optimizers, prepare
from amp_migrate.equivalence.reference.amp.properties import LEVELS, Properties
from amp_migrate.equivalence.reference.amp.state import amp_state, maybe_print
from amp_migrate.equivalence.reference.settings import settings


def initialize(
    models: Any,
    optimizers: Any = None,
    enabled: bool = True,
    opt_level: Any = "O1",
    cast_model_type: Any = None,
    patch_torch_functions: Any = None,
    keep_batchnorm_fp32: Any = None,
    master_weights: Any = None,
    loss_scale: Any = None,
    cast_model_outputs: torch.dtype | None = None,
    num_losses: int = 1,
    verbosity: int = 1,
    min_loss_scale: float | None = None,
    max_loss_scale: float = 2.0**24,
) -> Any:
    """Prepare models and optimizers, in place, and return them in the shape they came in.

    Every property that is not None overrides the level's default. Raises RuntimeError on an
    unknown level, a contradictory override, a wrapped or fp16 model, or a used optimizer.
    """
    properties = Properties()
    amp_state.opt_properties = properties
    amp_state.verbosity = verbosity
    if not enabled:
        return models if optimizers is None else (models, optimizers)
    if not torch.backends.cudnn.enabled:
        raise RuntimeError("Amp requires torch.backends.cudnn.enabled = True")
    if opt_level not in LEVELS:
        raise RuntimeError(
            f"Unexpected optimization level {opt_level}. Options are 'O0', 'O1', 'O2', 'O3'.  "
            "Note that in `O0`, `O1`, etc., the prefix O is the letter O, not the number zero."
        )
    level = LEVELS[opt_level]
    properties.adopt(level)
    maybe_print(f"Selected optimization level {level.name}:  {level.brief}", True)
    amp_state.min_loss_scale = min_loss_scale
    amp_state.max_loss_scale = max_loss_scale
    if cast_model_type is not None:
        properties.override_cast_model_type(cast_model_type)
    if patch_torch_functions is not None:
        properties.override_patch_torch_functions(patch_torch_functions)
    if keep_batchnorm_fp32 is not None:
        properties.override_keep_batchnorm_fp32(keep_batchnorm_fp32)
    if master_weights is not None:
        properties.override_master_weights(master_weights)
    if loss_scale is not None:
        properties.override_loss_scale(loss_scale)
    if not settings.casts:
        _drop_casts(properties)
        cast_model_outputs = None
    maybe_print("Optimization options are:", True)
    for name, value in properties.options.items():
        maybe_print(f"{name:22} : {value}", True)
    optimizer_list = as_optimizers(optimizers)
    model_list = as_models(models)
    prepare(model_list, optimizer_list, properties, num_losses, cast_model_outputs)
    return models if not optimizer_list and optimizers is None else (models, optimizers)


def _drop_casts(properties: Properties) -> None:
    scale = properties.loss_scale
    if properties.patch_torch_functions:
        amp_state.handle = NoOpHandle()
    properties.adopt(LEVELS["O0"])
    properties.cast_model_type = None
    properties.loss_scale = scale


def state_dict(destination: dict[str, Any] | None = None) -> dict[str, Any]:
    """Scale and clean backwards of every loss scaler. Raises AttributeError if AMP is not on."""
    if destination is None:
        destination = {}
    for index, scaler in enumerate(amp_state.loss_scalers):
        destination[f"loss_scaler{index}"] = {
            "loss_scale": scaler.loss_scale(),
            "unskipped": scaler._unskipped,
        }
    return destination


def load_state_dict(state_dict: dict[str, Any]) -> None:
    """Restore the loss scalers, warning if their number differs.

    Raises RuntimeError on a key that is not a loss scaler's.
    """
    scalers = amp_state.loss_scalers
    if len(state_dict) != len(scalers):
        print(
            f"Warning: state_dict contains {len(state_dict)} entries, while {len(scalers)} "
            "loss_scalers are used"
        )
    unexpected: list[str] = []
    used = 0
    for key, saved in state_dict.items():
        if "loss_scaler" not in key:
            unexpected.append(key)
            continue
        if used == len(scalers):
            print(f"Skipping loss_scaler[{used}], since num_losses was set to {len(scalers)}")
            break
        scalers[used]._loss_scale = saved["loss_scale"]
        scalers[used]._unskipped = saved["unskipped"]
        used += 1
    if unexpected:
        names = ", ".join(f'"{key}"' for key in unexpected)
        raise RuntimeError(
            f"Error(s) in loading state_dict. Unexpected key(s) in state_dict: {names}. "
        )
