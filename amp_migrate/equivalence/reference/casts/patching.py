"""`amp.init`: put the O1 patches in place, process-wide."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import torch

from amp_migrate.equivalence.reference.amp.decorators import registry
from amp_migrate.equivalence.reference.amp.handle import AmpHandle, NoOpHandle
from amp_migrate.equivalence.reference.amp.state import amp_state
from amp_migrate.equivalence.reference.casts import lists
from amp_migrate.equivalence.reference.casts.rnn import patch_rnn
from amp_migrate.equivalence.reference.casts.tensors import Cast, to_float, to_half
from amp_migrate.equivalence.reference.casts.wrappers import (
    cast_arguments,
    match_self,
    promote,
    promote_sequence,
    reject_half,
    reject_half_self,
)
from amp_migrate.equivalence.reference.settings import settings

_F = torch.nn.functional
_handles: list[AmpHandle] = []


def init(
    enabled: bool = True,
    loss_scale: float | str = "dynamic",
    enable_caching: bool = True,
    verbose: bool = False,
    allow_banned: bool = False,
) -> AmpHandle | NoOpHandle:
    """Patch torch, torch.nn.functional and torch.Tensor, on top of any earlier patches; nothing where casts are off."""
    if not enabled:
        idle = NoOpHandle()
        registry.handle = idle
        return idle
    handle = AmpHandle(enable_caching, verbose)
    _handles.append(handle)
    if settings.casts:
        _patch(handle, allow_banned)
    registry.handle = handle
    amp_state.handle = handle
    return handle


def _patch(handle: AmpHandle, allow_banned: bool) -> None:
    _patch_registered(handle)
    _patch_casts(handle)
    _patch_promotions(handle)
    _patch_in_place(handle)
    patch_rnn(handle)
    if allow_banned:
        _cast(handle, _F, (lists.BANNED,), to_float)
    else:
        reject = functools.partial(reject_half, message=lists.BANNED_MESSAGE)
        handle.patches.wrap(_F, lists.BANNED, reject)


def remove_all() -> None:
    """Undo the patches of every `init` of this process."""
    for handle in reversed(_handles):
        handle._deactivate()
    _handles.clear()
    for overrides in (lists.FUNCTIONAL, lists.TORCH, lists.TENSOR):
        overrides.reset()


def _cast(handle: AmpHandle, owner: object, names: Iterable[str], cast: Cast) -> None:
    for name in names:
        wrapper = functools.partial(
            cast_arguments, cast=cast, handle=handle, cached=cast is to_half
        )
        handle.patches.wrap(owner, name, wrapper)


def _patch_registered(handle: AmpHandle) -> None:
    for owner, name, cast in registry.casts:
        _cast(handle, owner, (name,), cast)
    for owner, name in registry.promotions:
        handle.patches.wrap(owner, name, promote)
    registry.casts.clear()
    registry.promotions.clear()


def _patch_casts(handle: AmpHandle) -> None:
    _cast(handle, _F, (lists.FUNCTIONAL_HALF_REPAIR,), to_half)
    owners = ((_F, lists.FUNCTIONAL), (torch, lists.TORCH), (torch.Tensor, lists.TENSOR))
    for owner, overrides in owners:
        _cast(handle, owner, overrides.FP16_FUNCS, to_half)
        _cast(handle, owner, overrides.FP32_FUNCS, to_float)


def _patch_promotions(handle: AmpHandle) -> None:
    patches = handle.patches
    patches.wrap(_F, lists.FUNCTIONAL_PROMOTE_REPAIR, promote)
    for name in lists.TORCH_PROMOTE:
        patches.wrap(torch, name, promote)
    for name in lists.TENSOR_PROMOTE:
        patches.wrap(torch.Tensor, name, promote)
    for name in lists.SEQUENCE_PROMOTE:
        patches.wrap(torch, name, promote_sequence)


def _patch_in_place(handle: AmpHandle) -> None:
    patches = handle.patches
    for name in lists.in_place(lists.TORCH_FLOAT):
        message = f"Cannot call in-place function {name} with fp16 arguments."
        patches.wrap(torch, name, functools.partial(reject_half, message=message))
    for name in lists.in_place(lists.TENSOR_FLOAT):
        message = f"Cannot call in-place method {name} on fp16 Tensors."
        patches.wrap(torch.Tensor, name, functools.partial(reject_half_self, message=message))
    for name in lists.in_place(lists.TENSOR_HALF + lists.TENSOR_PROMOTE):
        patches.wrap(torch.Tensor, name, match_self)
