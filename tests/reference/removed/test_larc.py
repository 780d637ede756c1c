"""The LARC wrapper, alone and under AMP."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from amp_migrate.equivalence import reference
from reference.support import batch, digest, linear, mlp, put_inf, sgd
from reference.training import make_scaler


def _larc(optimizer: Any, **kwargs: Any) -> Any:
    from apex.parallel.LARC import LARC

    return LARC(optimizer, **kwargs)


@pytest.mark.parametrize(("clip", "expected"), [(True, 0.02), (False, 0.04)])
def test_trust_ratio(clip: bool, expected: float, amp: Any) -> None:
    """With clip the ratio is divided by the rate and at most 1."""
    model = linear(1.0)
    optimizer = _larc(sgd(model, lr=2.0), trust_coefficient=0.02, clip=clip)
    model.weight.grad = torch.ones(1, 2)
    optimizer.step()
    assert model.weight[0, 0].item() == pytest.approx(1.0 - expected)


def test_weight_decay_goes_through_the_ratio(amp: Any) -> None:
    """The optimizer gets its decay back afterwards."""
    model = linear(1.0)
    inner = torch.optim.SGD(model.parameters(), lr=1.0, weight_decay=0.5)
    optimizer = _larc(inner, trust_coefficient=0.3)
    model.weight.grad = torch.ones(1, 2)
    optimizer.step()
    # ratio 0.3 / (1 + 0.5), gradient 1 + 0.5
    assert model.weight[0, 0].item() == pytest.approx(1.0 - 0.3)
    assert inner.param_groups[0]["weight_decay"] == 0.5


def test_zero_norms_are_left_alone(amp: Any) -> None:
    """Neither rescaled nor decayed."""
    model = linear(0.0)
    optimizer = _larc(sgd(model))
    model.weight.grad = torch.ones(1, 2)
    optimizer.step()
    assert model.weight[0, 0].item() == -1.0


def test_it_passes_the_optimizer_through(amp: Any) -> None:
    """Groups, state and checkpoints are the wrapped one's; schedulers refuse it."""
    model = linear()
    inner = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    optimizer = _larc(inner)
    assert optimizer.param_groups is inner.param_groups
    assert optimizer.state is inner.state
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})
    assert len(inner.param_groups) == 2
    with pytest.raises(TypeError):
        optimizer.zero_grad(set_to_none=True)
    with pytest.raises(TypeError):
        torch.optim.lr_scheduler.StepLR(optimizer, 1)


def _train(amp: Any, level: str, overflow: int) -> list[Any]:
    model = mlp()
    optimizer = _larc(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3))
    amp.initialize(model, optimizer, opt_level=level, loss_scale="dynamic", verbosity=0)
    rows = []
    for step in range(6):
        images, labels = batch(step)
        loss = F.cross_entropy(model(images), labels)
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
            if step == overflow:
                put_inf(model)
        optimizer.step()
        optimizer.zero_grad()
        rows.append([loss.item(), digest(model.parameters())])
    return rows


@pytest.mark.parametrize("overflow", [-1, 2])
def test_larc_under_a_grad_scaler_is_identical(overflow: int, amp: Any) -> None:
    """`scaler.step(larc)` does what Apex does."""
    apex = _train(amp, "O0", overflow)
    model = mlp()
    inner = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    optimizer = _larc(inner)
    reference.uninstall()
    scaler = make_scaler("dynamic")
    native = []
    for step in range(6):
        images, labels = batch(step)
        loss = F.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        if step == overflow:
            put_inf(model)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        native.append([loss.item(), digest(model.parameters())])
    assert native == apex


@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_larc_at_other_levels(level: str, amp: Any) -> None:
    """It takes every step but the overflowing one."""
    rows = _train(amp, level, overflow=2)
    changed = [later[1] != earlier[1] for earlier, later in itertools.pairwise(rows)]
    assert changed == [True, False, True, True, True]
