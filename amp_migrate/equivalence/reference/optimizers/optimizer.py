"""The methods AMP adds to an optimizer and those it replaces."""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch

from amp_migrate.equivalence.reference.amp.handle import disable_casts
from amp_migrate.equivalence.reference.optimizers.masters import MasterStash
from amp_migrate.equivalence.reference.optimizers.stash import OptimizerStash

_CLOSURE = "Currently, Amp does not support closure use with optimizers."
_SET = (
    "optimizer parameters need to be organized in ordered collections, but the ordering of "
    "tensors in sets will change between runs. Please use a list instead."
)
_ADDED = (
    "_lazy_init_maybe_master_weights",
    "_master_params_to_model_params",
    "_prepare_amp_backward",
    "_post_amp_backward",
    "_amp_lazy_init",
)


def process_optimizer(optimizer: Any, master_weights: bool | None) -> None:
    """Patch one optimizer in place. Raises RuntimeError if that was done before."""
    if hasattr(optimizer, "_amp_stash"):
        raise RuntimeError("A given optimizer should only be passed through amp.initialize once.")
    for name in _ADDED:
        if hasattr(optimizer, name):
            raise RuntimeError(f"Incoming optimizer already has {name} defined.")
    stash = MasterStash(optimizer) if master_weights else OptimizerStash(optimizer)
    optimizer._amp_stash = stash
    optimizer._lazy_init_maybe_master_weights = stash.collect
    optimizer._prepare_amp_backward = stash.prepare_backward
    optimizer._post_amp_backward = stash.post_backward
    optimizer._amp_lazy_init = stash.lazy_init
    if isinstance(stash, MasterStash):
        optimizer._master_params_to_model_params = stash.copy_to_model
        _patch_step(optimizer, stash)
        _patch_zero_grad(optimizer, stash)
    _patch_add_param_group(optimizer, stash)


def step_without_casts(optimizer: Any) -> None:
    """Run every step of `optimizer` with the O1 casts off, closures included."""
    original = optimizer.step

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with disable_casts():
            return original(*args, **kwargs)

    # A bound method, because learning-rate schedulers look for its __func__.
    optimizer.step = MethodType(step, optimizer)


def _patch_step(optimizer: Any, stash: MasterStash) -> None:
    original = optimizer.step

    def step(self: Any, closure: Any = None) -> Any:
        if closure is not None:
            raise RuntimeError(_CLOSURE)
        result = original()
        stash.copy_to_model()
        stash.drop_master_grads()
        return result

    optimizer.step = MethodType(step, optimizer)


def _patch_zero_grad(optimizer: Any, stash: MasterStash) -> None:
    def zero_grad(self: Any) -> None:
        stash.zero_model_grads()

    optimizer.zero_grad = MethodType(zero_grad, optimizer)


def _patch_add_param_group(optimizer: Any, stash: OptimizerStash) -> None:
    original = optimizer.add_param_group

    def add_param_group(self: Any, new_group: Any) -> None:
        stash.lazy_init()
        assert isinstance(new_group, dict), "param group must be a dict"
        params = new_group["params"]
        if isinstance(params, set):
            raise TypeError(_SET)
        new_group["params"] = [params] if isinstance(params, torch.Tensor) else list(params)
        stash.add_params(new_group["params"])
        original(new_group)

    optimizer.add_param_group = MethodType(add_param_group, optimizer)
