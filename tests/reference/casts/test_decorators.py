"""User functions under O1: decorators and registered names."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from torch import nn

from reference.support import linear, sgd

HALF = torch.float16
FLOAT = torch.float32


def _initialize(amp: Any, level: str = "O1") -> None:
    model = linear()
    amp.initialize(model, sgd(model), opt_level=level)


def _pair(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.dtype, torch.dtype]:
    return x.dtype, y.dtype


def test_half_function(amp: Any) -> None:
    """All floating arguments, positional and keyword, in fp16."""
    decorated = amp.half_function(_pair)
    _initialize(amp)
    assert decorated(torch.ones(1), y=torch.ones(1)) == (HALF, HALF)
    assert decorated(torch.ones(1), torch.ones(1, dtype=torch.long)) == (HALF, torch.int64)


def test_half_function_caches_parameters(amp: Any) -> None:
    """As the built-in ones."""
    decorated = amp.half_function(_pair)
    _initialize(amp)
    weight = nn.Parameter(torch.ones(1))
    decorated(weight, torch.ones(1))
    assert weight in amp._amp_state.handle.cache


def test_float_function_casts_only_the_arguments(amp: Any) -> None:
    """A matrix product inside goes back to fp16."""
    decorated = amp.float_function(lambda x: (x.dtype, (x @ x).dtype))
    _initialize(amp)
    assert decorated(torch.ones(2, 2, dtype=HALF)) == (FLOAT, HALF)


def test_promote_function(amp: Any) -> None:
    """Mixed arguments to fp32, equal ones as they are, others refused."""
    decorated = amp.promote_function(_pair)
    _initialize(amp)
    half, single = torch.ones(1, dtype=HALF), torch.ones(1)
    assert decorated(half, single) == (FLOAT, FLOAT)
    assert decorated(half, half) == (HALF, HALF)
    with pytest.raises(NotImplementedError):
        decorated(half, torch.ones(1, dtype=torch.float64))


@pytest.mark.parametrize("level", ["O0", "O2", "O3"])
def test_decorators_do_nothing_at_other_levels(level: str, amp: Any) -> None:
    """And nothing before initialize, or with casts disabled."""
    decorated = amp.half_function(_pair)
    assert decorated(torch.ones(1), torch.ones(1)) == (FLOAT, FLOAT)
    _initialize(amp, level)
    assert decorated(torch.ones(1), torch.ones(1)) == (FLOAT, FLOAT)


def test_decorators_obey_disable_casts(amp: Any) -> None:
    """Only while casts are on."""
    decorated = amp.half_function(_pair)
    _initialize(amp)
    with amp.disable_casts():
        assert decorated(torch.ones(1), torch.ones(1)) == (FLOAT, FLOAT)


def test_registered_names(amp: Any) -> None:
    """They take effect at the next initialize, in the module they were found in."""
    module: Any = types.ModuleType("extension")
    module.half = module.single = module.promoted = _pair
    amp.register_half_function(module, "half")
    amp.register_float_function(module, "single")
    amp.register_promote_function(module, "promoted")
    half, single = torch.ones(1, dtype=HALF), torch.ones(1)
    assert module.half(half, single) == (HALF, FLOAT)
    _initialize(amp)
    assert module.half(half, single) == (HALF, HALF)
    assert module.single(half, single) == (FLOAT, FLOAT)
    assert module.promoted(half, single) == (FLOAT, FLOAT)


def test_registered_einsum(amp: Any) -> None:
    """The commonest registration: without it einsum keeps fp32."""
    amp.register_half_function(torch, "einsum")
    _initialize(amp)
    assert torch.einsum("ij,jk->ik", torch.ones(2, 2), torch.ones(2, 2)).dtype == HALF


def test_registered_sigmoid_lets_bce_pass(amp: Any) -> None:
    """The other advice of the error message."""
    amp.register_float_function(torch, "sigmoid")
    _initialize(amp)
    probabilities = torch.sigmoid(torch.zeros(2, dtype=HALF))
    assert nn.BCELoss()(probabilities, torch.ones(2)).dtype == FLOAT


def test_unknown_names(amp: Any) -> None:
    """ValueError at once."""
    for register in (
        amp.register_half_function,
        amp.register_float_function,
        amp.register_promote_function,
    ):
        with pytest.raises(ValueError, match="No function named nothing"):
            register(torch, "nothing")


def test_the_pre_2019_handle(amp: Any) -> None:
    """init() patches, and its scale_loss raises."""
    handle = amp.init()
    assert handle.is_active()
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == HALF
    with pytest.raises(RuntimeError, match="old Amp API"), handle.scale_loss(torch.ones(1), None):
        pass


def test_a_disabled_handle(amp: Any) -> None:
    """init(enabled=False) does nothing."""
    handle = amp.init(enabled=False)
    assert not handle.is_active()
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == FLOAT
    loss = torch.ones(1)
    with handle.scale_loss(loss, None) as scaled:
        assert scaled is loss
