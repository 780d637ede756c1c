"""Applies the chosen properties to models, optimizers and torch."""

from __future__ import annotations

from typing import Any

import torch

from amp_migrate.equivalence.reference.amp.casters import caster, float_state_dict, patch_forward
from amp_migrate.equivalence.reference.amp.properties import Properties
from amp_migrate.equivalence.reference.amp.state import amp_state, warn_or_raise
from amp_migrate.equivalence.reference.casts.patching import init
from amp_migrate.equivalence.reference.fp16.convert import convert_network
from amp_migrate.equivalence.reference.fp16.optimizer import FP16_Optimizer
from amp_migrate.equivalence.reference.optimizers.optimizer import (
    process_optimizer,
    step_without_casts,
)
from amp_migrate.equivalence.reference.optimizers.scaler import LossScaler
from amp_migrate.equivalence.reference.parallel.larc import LARC
from amp_migrate.equivalence.reference.settings import settings


def as_models(models: Any) -> list[torch.nn.Module]:
    """`models` as a list. Raises TypeError on anything but a module or a list of them."""
    if isinstance(models, torch.nn.Module):
        return [models]
    if isinstance(models, list):
        return models
    raise TypeError("models must be either a single model or a list of models.")


def as_optimizers(optimizers: Any) -> list[Any]:
    """`optimizers` as a list. Raises TypeError on tuples, RuntimeError on an FP16_Optimizer."""
    if optimizers is None:
        return []
    if isinstance(optimizers, (torch.optim.Optimizer, LARC)):
        return [optimizers]
    for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
        if isinstance(optimizer, FP16_Optimizer):
            raise RuntimeError(
                "An incoming optimizer is an instance of apex.fp16_utils.FP16_Optimizer. The "
                "optimizer(s) passed to amp.initialize() must be bare instances of either "
                "ordinary Pytorch optimizers, or Apex fused optimizers."
            )
    if not isinstance(optimizers, list):
        raise TypeError("optimizers must be either a single optimizer or a list of optimizers.")
    return optimizers


def prepare(
    models: list[torch.nn.Module],
    optimizers: list[Any],
    properties: Properties,
    num_losses: int,
    cast_model_outputs: torch.dtype | None,
) -> None:
    """Cast, patch and register everything in place."""
    _check_models(models)
    if properties.cast_model_type:
        _cast_models(models, optimizers, properties, cast_model_outputs or torch.float32)
    elif cast_model_outputs is not None:
        for model in models:
            patch_forward(model, None, caster(cast_model_outputs))
    for optimizer in optimizers:
        process_optimizer(optimizer, properties.master_weights)
    amp_state.loss_scalers = [
        LossScaler(
            properties.loss_scale,
            min_loss_scale=amp_state.min_loss_scale,
            max_loss_scale=amp_state.max_loss_scale,
        )
        for _ in range(num_losses)
    ]
    if properties.patch_torch_functions:
        init(verbose=amp_state.verbosity == 2)
        for optimizer in optimizers:
            step_without_casts(optimizer)


def _cast_models(
    models: list[torch.nn.Module],
    optimizers: list[Any],
    properties: Properties,
    outputs: torch.dtype,
) -> None:
    dtype = properties.cast_model_type
    for model in models:
        if properties.keep_batchnorm_fp32:
            convert_network(model, dtype)
        else:
            model.to(dtype)
        patch_forward(model, caster(dtype), caster(outputs))
    for optimizer in optimizers:
        # Casts existing per-parameter state to the new dtype of the parameters.
        optimizer.load_state_dict(optimizer.state_dict())
    for model in models:
        float_state_dict(model)


def _check_models(models: list[torch.nn.Module]) -> None:
    wrappers = (torch.nn.parallel.DistributedDataParallel, torch.nn.parallel.DataParallel)
    for model in models:
        if isinstance(model, wrappers):
            raise RuntimeError(
                f"Incoming model is an instance of torch.nn.parallel.{type(model).__name__}. "
                "Parallel wrappers should only be applied to the model(s) AFTER \n"
                "the model(s) have been returned from amp.initialize."
            )
    if amp_state.allow_incoming_model_not_fp32:
        return
    for model in models:
        for name, param in model.named_parameters():
            _check_tensor("param", name, param)
        for name, buffer in model.named_buffers():
            _check_tensor("buffer", name, buffer)


def _check_tensor(kind: str, name: str, tensor: torch.Tensor) -> None:
    if not tensor.is_floating_point():
        return
    found = f"Found {kind} {name} with type {tensor.type()}, expected torch.cuda.FloatTensor.\n"
    if tensor.dtype == torch.float16:
        warn_or_raise(
            found + "When using amp.initialize, you do not need to call .half() on your model\n"
            "before passing it, no matter what optimization level you choose."
        )
    elif not settings.castable(tensor):
        warn_or_raise(
            found + "When using amp.initialize, you need to provide a model with tensors located "
            "on a CUDA device\nbefore passing it no matter what optimization level you chose. "
            "Use model.to('cuda') to use the default device."
        )
