"""The loss scaler and its state dict."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch

from reference.support import linear, sgd


def _scaler(amp: Any, *args: Any, **kwargs: Any) -> Any:
    from apex.amp.scaler import LossScaler

    return LossScaler(*args, **kwargs)


def _clean(scaler: Any, times: int = 1) -> None:
    for _ in range(times):
        scaler.clear_overflow_state()
        scaler.update_scale()


def _overflow(scaler: Any) -> bool:
    scaler.clear_overflow_state()
    grad = torch.tensor([float("inf")])
    scaler.unscale([grad], [grad], None)
    skipped: bool = scaler.update_scale()
    return skipped


def test_constants(amp: Any) -> None:
    """2**16 at first, doubled after 2000 clean backwards, never above 2**24."""
    scaler = _scaler(amp, "dynamic")
    assert scaler.loss_scale() == 2.0**16
    _clean(scaler, 1999)
    assert (scaler.loss_scale(), scaler._unskipped) == (2.0**16, 1999)
    _clean(scaler)
    assert (scaler.loss_scale(), scaler._unskipped) == (2.0**17, 0)
    _clean(scaler, 2000 * 20)
    assert scaler.loss_scale() == 2.0**24


def test_overflow_halves_and_restarts_the_count(amp: Any) -> None:
    """Without a floor down to anything."""
    scaler = _scaler(amp, "dynamic")
    _clean(scaler, 10)
    assert _overflow(scaler) is True
    assert (scaler.loss_scale(), scaler._unskipped) == (2.0**15, 0)
    for _ in range(20):
        _overflow(scaler)
    assert scaler.loss_scale() == 2.0**-5


def test_minimum(amp: Any) -> None:
    """A floor for halving; 0 means none."""
    scaler = _scaler(amp, "dynamic", min_loss_scale=2.0**15)
    for _ in range(3):
        _overflow(scaler)
    assert scaler.loss_scale() == 2.0**15
    scaler = _scaler(amp, "dynamic", min_loss_scale=0.0)
    _overflow(scaler)
    assert scaler.loss_scale() == 2.0**15


def test_a_low_maximum_limits_the_start(amp: Any) -> None:
    """min(max_loss_scale, 2**16)."""
    assert _scaler(amp, "dynamic", max_loss_scale=2.0**10).loss_scale() == 2.0**10


def test_static(amp: Any) -> None:
    """Never checked, never moved, its count without end."""
    scaler = _scaler(amp, 64.0)
    assert _overflow(scaler) is False
    _clean(scaler, 4999)
    assert (scaler.loss_scale(), scaler._unskipped) == (64.0, 5000)


def test_the_fp32_sum_decides(amp: Any) -> None:
    """A finite gradient whose sum overflows counts as overflow; fp16 is summed in fp32."""
    scaler = _scaler(amp, "dynamic")
    grad = torch.full((4,), 3e38)
    scaler.unscale([grad], [grad], None)
    assert scaler.update_scale() is True
    scaler.clear_overflow_state()
    grad = torch.full((4,), 60000.0, dtype=torch.float16)
    scaler.unscale([grad], [torch.zeros(4)], None)
    assert scaler.update_scale() is False


def test_unscaling_stops_at_the_first_overflow(amp: Any) -> None:
    """The gradients after it, and those of later calls, keep their scale."""
    scaler = _scaler(amp, "dynamic")
    grads = [torch.full((1,), value) for value in (2.0**16, float("inf"), 2.0**16)]
    scaler.unscale(grads, grads, None)
    assert [grad.item() for grad in grads] == [1.0, float("inf"), 2.0**16]
    late = torch.full((1,), 2.0**16)
    scaler.unscale([late], [late], None)
    assert late.item() == 2.0**16


def test_stashed_gradients_are_not_checked(amp: Any) -> None:
    """Only the new ones are."""
    scaler = _scaler(amp, "dynamic")
    grad = torch.full((1,), 2.0**16)
    scaler.unscale_with_stashed([grad], [torch.full((1,), float("inf"))], [grad])
    assert scaler.update_scale() is False


def test_state_dict(amp: Any) -> None:
    """Scale and count of every scaler; loading restores them."""
    model = linear()
    amp.initialize(model, sgd(model), opt_level="O1", num_losses=2, verbosity=0)
    scalers = amp._amp_state.loss_scalers
    _overflow(scalers[1])
    _clean(scalers[0], 3)
    saved = amp.state_dict()
    assert saved == {
        "loss_scaler0": {"loss_scale": 65536.0, "unskipped": 3},
        "loss_scaler1": {"loss_scale": 32768.0, "unskipped": 0},
    }
    _clean(scalers[1], 7)
    _overflow(scalers[0])
    amp.load_state_dict(saved)
    assert amp.state_dict() == saved


def test_state_dict_into_a_destination(amp: Any) -> None:
    """A mapping of the caller's."""
    amp.initialize(linear(), opt_level="O1", verbosity=0)
    destination: dict[str, Any] = {"epoch": 3}
    assert amp.state_dict(destination) is destination
    assert set(destination) == {"epoch", "loss_scaler0"}


def test_loading_another_number_of_scalers(
    talking_amp: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A warning; what fits is loaded."""
    amp = talking_amp
    amp.initialize(linear(), opt_level="O1", verbosity=0)
    one = {"loss_scale": 8.0, "unskipped": 1}
    amp.load_state_dict({"loss_scaler0": one, "loss_scaler1": {"loss_scale": 2.0, "unskipped": 2}})
    assert amp.state_dict() == {"loss_scaler0": one}
    said = capsys.readouterr().out
    assert "state_dict contains 2 entries, while 1 loss_scalers are used" in said
    assert "Skipping loss_scaler[1], since num_losses was set to 1" in said


def test_loading_unknown_keys(amp: Any) -> None:
    """RuntimeError that names them; the known ones are loaded."""
    amp.initialize(linear(), opt_level="O1", verbosity=0)
    with pytest.raises(RuntimeError, match='"epoch"'):
        amp.load_state_dict({"epoch": 1, "loss_scaler0": {"loss_scale": 8.0, "unskipped": 1}})
    assert amp._amp_state.loss_scalers[0].loss_scale() == 8.0


def test_private_access(amp: Any) -> None:
    """Programs set the scale of a scaler before training."""
    model = linear()
    optimizer = sgd(model)
    amp.initialize(model, optimizer, opt_level="O1", verbosity=0)
    amp._amp_state.loss_scalers[0]._loss_scale = 2.0**20
    with amp.scale_loss(torch.ones(1), optimizer) as scaled:
        assert scaled.item() == 2.0**20


def test_scalers_pickle(amp: Any) -> None:
    """FP16_Optimizer checkpoints hold one, by the name it has in Apex."""
    assert pickle.loads(b"capex.amp.scaler\nLossScaler\n.") is type(_scaler(amp, 1.0))
    scaler = pickle.loads(pickle.dumps(_scaler(amp, "dynamic")))
    assert scaler.loss_scale() == 2.0**16
