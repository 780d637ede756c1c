"""A GAN with three loss ids, in its Apex form and in its native form."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from amp_migrate.equivalence import reference
from reference.support import OPTIMIZERS, batch, model_digest, optimizer_digest, put_inf
from reference.training import casting, make_scaler

STEPS = 6


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
