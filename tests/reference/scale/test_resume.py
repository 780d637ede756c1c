"""Checkpoints: resuming under Apex, and natively from a converted state."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from amp_migrate.equivalence import reference
from reference.support import OPTIMIZERS, batch, mlp, model_digest, put_inf
from reference.training import casting, make_scaler


def _apex_steps(
    amp: Any, model: nn.Module, optimizer: Any, steps: range, overflow: int
) -> list[Any]:
    rows = []
    for step in steps:
        images, labels = batch(step)
        loss = F.cross_entropy(model(images), labels)
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
            if step == overflow:
                put_inf(model)
        optimizer.step()
        optimizer.zero_grad()
        scaler = amp._amp_state.loss_scalers[0]
        rows.append([loss.item(), scaler.loss_scale(), scaler._unskipped, model_digest(model)])
    return rows


def _start_apex(amp: Any, level: str, growth: int) -> tuple[nn.Module, Any]:
    model = mlp()
    optimizer = OPTIMIZERS["adam"](model.parameters())
    amp.initialize(model, optimizer, opt_level=level, loss_scale="dynamic", verbosity=0)
    amp._amp_state.loss_scalers[0]._scale_seq_len = growth
    return model, optimizer


def _saved(amp: Any, model: nn.Module, optimizer: Any) -> dict[str, Any]:
    stream = io.BytesIO()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "amp": amp.state_dict(),
    }
    torch.save(state, stream)
    stream.seek(0)
    loaded: dict[str, Any] = torch.load(stream, weights_only=False)
    return loaded


@pytest.mark.parametrize("level", ["O0", "O1"])
def test_resuming(level: str, amp: Any) -> None:
    """A resumed run goes on as the uninterrupted one, its overflow history included."""
    model, optimizer = _start_apex(amp, level, growth=5)
    whole = _apex_steps(amp, model, optimizer, range(4), overflow=1)
    saved = _saved(amp, model, optimizer)
    whole = _apex_steps(amp, model, optimizer, range(4, 10), overflow=7)
    reference.reset()
    model, optimizer = _start_apex(amp, level, growth=5)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    amp.load_state_dict(saved["amp"])
    assert _apex_steps(amp, model, optimizer, range(4, 10), overflow=7) == whole
    assert len({row[1] for row in whole}) > 1


def test_resuming_o2_loses_master_precision(amp: Any) -> None:
    """The checkpoint holds the rounded weights, so the resumed run differs: an Apex fault."""
    model, optimizer = _start_apex(amp, "O2", growth=2000)
    _apex_steps(amp, model, optimizer, range(4), overflow=-1)
    masters = [p.detach().clone() for p in amp.master_params(optimizer)]
    saved = _saved(amp, model, optimizer)
    reference.reset()
    model, optimizer = _start_apex(amp, "O2", growth=2000)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    optimizer.zero_grad()
    resumed = list(amp.master_params(optimizer))
    assert all(torch.equal(m.half(), r.half()) for m, r in zip(masters, resumed, strict=True))
    assert any(not torch.equal(m, r) for m, r in zip(masters, resumed, strict=True))


def _converted(saved: dict[str, Any], growth: int) -> dict[str, Any]:
    state = saved["loss_scaler0"]
    return {
        "scale": float(state["loss_scale"]),
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": growth,
        "_growth_tracker": state["unskipped"] % growth,
    }


@pytest.mark.parametrize("level", ["O0", "O1"])
def test_a_converted_checkpoint_goes_on_natively(level: str, amp: Any) -> None:
    """An Apex checkpoint, its scaler state converted, resumed under torch alone."""
    model, optimizer = _start_apex(amp, level, growth=5)
    _apex_steps(amp, model, optimizer, range(4), overflow=1)
    saved = copy.deepcopy(_saved(amp, model, optimizer))
    apex = _apex_steps(amp, model, optimizer, range(4, 10), overflow=7)
    reference.uninstall()
    model = mlp()
    optimizer = OPTIMIZERS["adam"](model.parameters())
    scaler = make_scaler("dynamic")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    scaler.load_state_dict(_converted(saved["amp"], growth=5))
    native = []
    for step in range(4, 10):
        images, labels = batch(step)
        with casting(level):
            loss = F.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        if step == 7:
            put_inf(model)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        tracker = scaler._get_growth_tracker()
        native.append([loss.item(), scaler.get_scale(), tracker, model_digest(model)])
    assert native == apex
