"""The handle of the O1 patches, the scale_loss block and disable_casts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from amp_migrate.equivalence.reference.amp.old_api import OptimWrapper
from amp_migrate.equivalence.reference.amp.state import amp_state, maybe_print
from amp_migrate.equivalence.reference.casts.cache import CastCache
from amp_migrate.equivalence.reference.casts.patches import Patches
from amp_migrate.equivalence.reference.optimizers.scaler import LossScaler
from amp_migrate.equivalence.reference.parallel.larc import LARC

_OLD_API = (
    "The old Amp API is no longer supported.  Please move to the new API, documented here:  "
    "https://nvidia.github.io/apex/amp.html.  Transition guide:  "
    "https://nvidia.github.io/apex/amp.html#transition-guide-for-old-api-users"
)
_CLOSURE = "Currently, Amp does not support closure use with optimizers."


class AmpHandle:
    """One set of O1 patches, whether they cast, and their weight cache."""

    def __init__(self, enable_caching: bool = True, verbose: bool = False) -> None:
        self.has_cache = enable_caching
        self.verbose = verbose
        self.cache = CastCache()
        self.patches = Patches()
        self._is_active = True

    def is_active(self) -> bool:
        """Whether the patched functions cast."""
        return self._is_active

    @contextlib.contextmanager
    def _disable_casts(self) -> Iterator[None]:
        # No try/finally, as in Apex: an exception inside leaves the casts off.
        self._is_active = False
        yield
        self._is_active = True

    @contextlib.contextmanager
    def scale_loss(self, loss: torch.Tensor, optimizer: Any) -> Iterator[torch.Tensor]:
        """The pre-2019 API: raises RuntimeError on entry."""
        raise RuntimeError(_OLD_API)
        yield loss

    def wrap_optimizer(self, optimizer: Any, num_loss: int = 1) -> OptimWrapper:
        """The pre-2019 wrapper with its own dynamic scaler per loss."""
        return OptimWrapper(optimizer, self, num_loss)

    def remove_cache(self, param: torch.Tensor) -> None:
        """Drop the cached cast of `param`."""
        self.cache.discard(param)

    def _clear_cache(self) -> None:
        self.cache.clear()

    def _deactivate(self) -> None:
        self.patches.restore()


class NoOpHandle:
    """What `amp.init(enabled=False)` returns."""

    has_cache = False
    verbose = False

    def is_active(self) -> bool:
        """Never."""
        return False

    @contextlib.contextmanager
    def _disable_casts(self) -> Iterator[None]:
        yield

    @contextlib.contextmanager
    def scale_loss(self, loss: torch.Tensor, optimizer: Any) -> Iterator[torch.Tensor]:
        """The loss as it is."""
        yield loss

    def wrap_optimizer(self, optimizer: Any, num_loss: int = 1) -> OptimWrapper:
        """A wrapper that passes everything on."""
        return OptimWrapper(optimizer, self, num_loss)

    def remove_cache(self, param: torch.Tensor) -> None:
        """There is no cache."""

    def _clear_cache(self) -> None:
        """There is no cache."""

    def _deactivate(self) -> None:
        """There are no patches."""


@contextlib.contextmanager
def disable_casts() -> Iterator[None]:
    """Switch the O1 casts off; an exception inside leaves them off."""
    with amp_state.handle._disable_casts():
        yield


@contextlib.contextmanager
def scale_loss(
    loss: torch.Tensor,
    optimizers: Any,
    loss_id: int = 0,
    model: Any = None,
    delay_unscale: bool = False,
    delay_overflow_check: bool = False,
) -> Iterator[torch.Tensor]:
    """Yield the scaled fp32 loss; on exit leave unscaled gradients and the next step decided.

    With `delay_unscale` the gradients stay scaled for a later block; with `delay_overflow_check`
    nothing is ever skipped. Raises RuntimeError before `initialize`, IndexError on a `loss_id`
    beyond `num_losses`.
    """
    if not hasattr(amp_state, "opt_properties"):
        raise RuntimeError(
            "Invoked 'with amp.scale_loss`, but internal Amp state has not been initialized.  "
            "model, optimizer = amp.initialize(model, optimizer, opt_level=...) must be called "
            "before `with amp.scale_loss`."
        )
    properties = amp_state.opt_properties
    if not properties.enabled:
        yield loss
        return
    if isinstance(optimizers, (torch.optim.Optimizer, LARC)):
        optimizers = [optimizers]
    scaler = amp_state.loss_scalers[loss_id]
    scale = scaler.loss_scale()
    if not properties.master_weights and not scaler.dynamic and scale == 1.0:
        yield loss.float()
        _clear_weight_cache()
        return
    # A tuple of optimizers gets no stash: earlier gradients are then unscaled a second time.
    if not delay_unscale and isinstance(optimizers, list):
        for optimizer in optimizers:
            if not optimizer._amp_stash.params_have_scaled_gradients:
                optimizer._prepare_amp_backward()
    yield loss.float() * scale
    if delay_unscale:
        for optimizer in optimizers:
            optimizer._amp_stash.params_have_scaled_gradients = True
    else:
        _unscale(optimizers, scaler)
        if not delay_overflow_check and scaler.update_scale():
            for optimizer in optimizers:
                if not optimizer._amp_stash.already_patched:
                    _skip_next_step(optimizer, scaler, loss_id)
    _clear_weight_cache()


def _clear_weight_cache() -> None:
    if amp_state.opt_properties.patch_torch_functions:
        amp_state.handle._clear_cache()


def _unscale(optimizers: Any, scaler: LossScaler) -> None:
    scaler.clear_overflow_state()
    for optimizer in optimizers:
        optimizer._post_amp_backward(scaler)
        optimizer._amp_stash.params_have_scaled_gradients = False


def _skip_next_step(optimizer: Any, scaler: LossScaler, loss_id: int) -> None:
    original = optimizer.step
    stash = optimizer._amp_stash

    def skip_step(closure: Any = None) -> None:
        if closure is not None:
            raise RuntimeError(_CLOSURE)
        maybe_print(
            f"Gradient overflow.  Skipping step, loss scaler {loss_id} "
            f"reducing loss scale to {scaler.loss_scale()}"
        )
        for master in stash.all_fp32_from_fp16_params:
            master.grad = None
        optimizer.step = original
        stash.already_patched = False

    optimizer.step = skip_step
    stash.already_patched = True
