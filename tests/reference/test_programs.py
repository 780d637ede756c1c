"""Several losses and optimizers, in their Apex form and in their native form."""

from __future__ import annotations

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
