"""Whole programs: several losses and optimizers, GANs, resuming; Apex form against native form."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from amp_migrate.equivalence import reference
from reference.support import (
    MODELS,
    OPTIMIZERS,
    batch,
    mlp,
    model_digest,
    optimizer_digest,
    put_inf,
)
from reference.training import HalfModel, all_finite, casting, make_scaler

LEVELS = ("O0", "O1", "O2")
STEPS = 6


def _forward(level: str, model: nn.Module, half: HalfModel | None) -> Any:
    return half if level == "O2" else model


def _two_losses_apex(
    amp: Any, level: str, ids: bool, overflow: tuple[int, int] | None
) -> list[Any]:
    model = mlp()
    optimizer = OPTIMIZERS["adam"](model.parameters())
    amp.initialize(
        model,
        optimizer,
        opt_level=level,
        loss_scale="dynamic",
        num_losses=2 if ids else 1,
        verbosity=0,
    )
    rows = []
    for step in range(STEPS):
        images, labels = batch(step)
        output = model(images)
        losses = (F.cross_entropy(output, labels), F.mse_loss(output, torch.zeros(8, 4)))
        for index, loss in enumerate(losses):
            with amp.scale_loss(loss, optimizer, loss_id=index if ids else 0) as scaled:
                scaled.backward(retain_graph=index == 0)
                if overflow == (step, index):
                    put_inf(model)
        optimizer.step()
        optimizer.zero_grad()
        rows.append([loss.item() for loss in losses] + [model_digest(model)])
    return rows


def _two_losses_native(level: str, overflow: tuple[int, int] | None) -> list[Any]:
    model = mlp()
    optimizer = OPTIMIZERS["adam"](model.parameters())
    scaler = make_scaler("dynamic")
    half = HalfModel(model, optimizer) if level == "O2" else None
    rows = []
    for step in range(STEPS):
        images, labels = batch(step)
        with casting(level):
            output = _forward(level, model, half)(images)
            losses = (F.cross_entropy(output, labels), F.mse_loss(output, torch.zeros(8, 4)))
        for index, loss in enumerate(losses):
            scaler.scale(loss).backward(retain_graph=index == 0)
            if overflow == (step, index):
                put_inf(model)
            if half is not None:
                half.collect()
        scaler.step(optimizer)
        scaler.update()
        if half is not None:
            half.push()
        optimizer.zero_grad()
        rows.append([loss.item() for loss in losses] + [model_digest(model)])
    return rows


@pytest.mark.parametrize("overflow", [None, (2, 0), (2, 1)])
@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_two_losses_one_optimizer(
    level: str, ids: bool, overflow: tuple[int, int] | None, amp: Any
) -> None:
    """With one scaler or two, native has one."""
    apex = _two_losses_apex(amp, level, ids, overflow)
    reference.uninstall()
    assert apex == _two_losses_native(level, overflow)


def _pair(level: str) -> tuple[list[nn.Module], list[torch.optim.Optimizer]]:
    models = [MODELS["mlp"](), MODELS["cnn"]()]
    optimizers = [
        OPTIMIZERS["sgd"](models[0].parameters()),
        OPTIMIZERS["adam"](models[1].parameters()),
    ]
    return models, optimizers


def _two_optimizers_apex(amp: Any, level: str, overflow: int | None) -> list[Any]:
    models, optimizers = amp.initialize(
        *_pair(level), opt_level=level, loss_scale="dynamic", verbosity=0
    )
    rows = []
    for step in range(STEPS):
        images, labels = batch(step)
        loss = sum(F.cross_entropy(model(images), labels) for model in models)
        with amp.scale_loss(loss, optimizers) as scaled:
            scaled.backward()
            if overflow is not None and step == 2:
                put_inf(models[overflow])
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        scale = amp._amp_state.loss_scalers[0].loss_scale()
        rows.append([loss.item(), scale, model_digest(*models), optimizer_digest(*optimizers)])
    return rows


def _two_optimizers_native(level: str, overflow: int | None, together: bool) -> list[Any]:
    models, optimizers = _pair(level)
    scaler = make_scaler("dynamic")
    pairs = zip(models, optimizers, strict=True)
    halves = [HalfModel(m, o) for m, o in pairs] if level == "O2" else []
    rows = []
    for step in range(STEPS):
        images, labels = batch(step)
        with casting(level):
            loss = sum(F.cross_entropy(f(images), labels) for f in halves or models)
        scaler.scale(loss).backward()
        if overflow is not None and step == 2:
            put_inf(models[overflow])
        for half in halves:
            half.collect()
        for optimizer in optimizers:
            scaler.unscale_(optimizer)
        if not together or all_finite(*optimizers):
            for optimizer in optimizers:
                scaler.step(optimizer)
        scaler.update()
        for half in halves:
            half.push()
        for optimizer in optimizers:
            optimizer.zero_grad()
        rows.append(
            [loss.item(), scaler.get_scale(), model_digest(*models), optimizer_digest(*optimizers)]
        )
    return rows


@pytest.mark.parametrize("overflow", [None, 0, 1])
@pytest.mark.parametrize("level", LEVELS)
def test_a_joint_loss_over_two_optimizers(level: str, overflow: int | None, amp: Any) -> None:
    """Identical if native skips all optimizers together."""
    apex = _two_optimizers_apex(amp, level, overflow)
    reference.uninstall()
    assert apex == _two_optimizers_native(level, overflow, together=True)


@pytest.mark.parametrize("overflow", [0, 1])
@pytest.mark.parametrize("level", LEVELS)
def test_native_skips_optimizers_one_by_one(level: str, overflow: int, amp: Any) -> None:
    """Apex skips both: the programs part at the overflow, and not before."""
    apex = _two_optimizers_apex(amp, level, overflow)
    reference.uninstall()
    native = _two_optimizers_native(level, overflow, together=False)
    assert apex[:2] == native[:2]
    assert apex[2] != native[2]


def _gan_parts() -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(2)
    generator = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 16))
    critic = nn.Sequential(nn.Linear(16, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    return generator, critic


def _noise(step: int) -> torch.Tensor:
    return torch.randn(8, 4, generator=torch.Generator().manual_seed(step))


def _bce(output: torch.Tensor, target: float) -> torch.Tensor:
    return F.binary_cross_entropy_with_logits(output, torch.full((8, 1), target))


def _gan_apex(amp: Any, level: str, overflow: str) -> list[Any]:
    generator, critic = _gan_parts()
    for_g = OPTIMIZERS["adam"](generator.parameters())
    for_d = OPTIMIZERS["adam"](critic.parameters())
    amp.initialize(
        [critic, generator],
        [for_d, for_g],
        opt_level=level,
        loss_scale="dynamic",
        num_losses=3,
        verbosity=0,
    )
    rows = []
    for step in range(STEPS):
        real = batch(step)[0].flatten(1)
        critic.zero_grad()
        on_real = _bce(critic(real), 1.0)
        with amp.scale_loss(on_real, for_d, loss_id=0) as scaled:
            scaled.backward()
        fake = generator(_noise(step))
        on_fake = _bce(critic(fake.detach()), 0.0)
        with amp.scale_loss(on_fake, for_d, loss_id=1) as scaled:
            scaled.backward()
            if "d" in overflow and step == 2:
                put_inf(critic)
        for_d.step()
        generator.zero_grad()
        fooled = _bce(critic(fake), 1.0)
        with amp.scale_loss(fooled, for_g, loss_id=2) as scaled:
            scaled.backward()
            if "g" in overflow and step == 3:
                put_inf(generator)
        for_g.step()
        losses = [on_real.item(), on_fake.item(), fooled.item()]
        rows.append([*losses, model_digest(critic, generator), optimizer_digest(for_d, for_g)])
    return rows


def _gan_native(level: str, overflow: str, scalers: int) -> list[Any]:
    generator, critic = _gan_parts()
    for_g = OPTIMIZERS["adam"](generator.parameters())
    for_d = OPTIMIZERS["adam"](critic.parameters())
    scaler_d = make_scaler("dynamic")
    scaler_g = make_scaler("dynamic") if scalers == 2 else scaler_d
    rows = []
    for step in range(STEPS):
        real = batch(step)[0].flatten(1)
        critic.zero_grad()
        with casting(level):
            on_real = _bce(critic(real), 1.0)
        scaler_d.scale(on_real).backward()
        with casting(level):
            fake = generator(_noise(step))
            on_fake = _bce(critic(fake.detach()), 0.0)
        scaler_d.scale(on_fake).backward()
        if "d" in overflow and step == 2:
            put_inf(critic)
        scaler_d.step(for_d)
        if scalers == 2:
            scaler_d.update()
        generator.zero_grad()
        with casting(level):
            fooled = _bce(critic(fake), 1.0)
        scaler_g.scale(fooled).backward()
        if "g" in overflow and step == 3:
            put_inf(generator)
        scaler_g.step(for_g)
        scaler_g.update()
        losses = [on_real.item(), on_fake.item(), fooled.item()]
        rows.append([*losses, model_digest(critic, generator), optimizer_digest(for_d, for_g)])
    return rows


@pytest.mark.parametrize("scalers", [1, 2])
@pytest.mark.parametrize("overflow", ["", "d", "g", "dg"])
@pytest.mark.parametrize("level", ["O0", "O1"])
def test_gan(level: str, overflow: str, scalers: int, amp: Any) -> None:
    """Three loss ids against one or two native scalers."""
    apex = _gan_apex(amp, level, overflow)
    reference.uninstall()
    assert apex == _gan_native(level, overflow, scalers)


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
