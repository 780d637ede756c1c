"""The decorators that are written for `amp.half_function` and `amp.float_function`, run on tensors of a GPU that is not there."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from amp_migrate.rules.casts.cast_helper import Helper, Inside
from amp_migrate.scaler.spelling import Spelling


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    """Make CUDA tensors without data, under autocast."""
    with FakeTensorMode():
        torch.set_autocast_enabled("cuda", True)
        yield
        torch.set_autocast_enabled("cuda", False)


def _decorator(helper: Helper) -> Any:
    names: dict[str, Any] = {"torch": torch, "functools": functools}
    for each in dict.fromkeys((helper.base, helper)):
        exec(each.text(Spelling(torch_amp=True)), names)
    return names[helper.name]


def _seen(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    return (*args, *kwargs.values(), torch.is_autocast_enabled("cuda"))


def _tensor(dtype: torch.dtype, device: str = "cuda") -> torch.Tensor:
    return torch.ones(2, dtype=dtype, device=device)


def test_half_casts_what_the_gpu_holds_in_fp32() -> None:
    """Integers, float64, tensors of the CPU and other values stay."""
    call = _decorator(Helper(True, Inside.PYTHON))(_seen)
    given = (_tensor(torch.float32), _tensor(torch.int64), _tensor(torch.float64), "x")
    *found, on = call(*given, scale=_tensor(torch.float32, "cpu"), bias=_tensor(torch.float32))
    assert [getattr(v, "dtype", v) for v in found] == [
        torch.float16,
        torch.int64,
        torch.float64,
        "x",
        torch.float32,
        torch.float16,
    ]
    assert on


def test_a_list_is_cast_where_all_of_it_floats() -> None:
    """As in Apex: a list with anything else in it stays as it is."""
    call = _decorator(Helper(False, Inside.PYTHON))(_seen)
    half = _tensor(torch.float16)
    whole, mixed, on = call([half, (half,)], (half, None))
    assert whole[0].dtype == whole[1][0].dtype == torch.float32
    assert mixed[0] is half
    assert on


def test_a_kernel_runs_without_autocast() -> None:
    """Apex did not reach into compiled code, and autocast would."""
    call = _decorator(Helper(False, Inside.KERNEL))(_seen)
    value, on = call(_tensor(torch.float16))
    assert value.dtype == torch.float32
    assert not on
    assert torch.is_autocast_enabled("cuda")


@pytest.mark.parametrize("inside", [Inside.PYTHON, Inside.KERNEL])
@pytest.mark.parametrize("half", [False, True])
def test_arguments_stay_without_autocast(half: bool, inside: Inside) -> None:
    """With AMP off the function gets the very objects."""
    torch.set_autocast_enabled("cuda", False)
    call = _decorator(Helper(half, inside))(_seen)
    values = [_tensor(torch.float16), _tensor(torch.float32)]
    found, other, on = call(values, other=values[0])
    assert found is values and other is values[0] and not on
