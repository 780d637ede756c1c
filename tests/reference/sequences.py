"""Programs whose loss scales and skipped steps were recorded from Apex 25.04."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

STEPS = 8


@dataclass(frozen=True)
class Scenario:
    """`overflows` are (step, micro-batch, optimizer) whose gradients get one infinity."""

    level: str = "O0"
    loss_scale: float | str = "dynamic"
    micro_batches: int = 1
    delay_unscale: bool = False
    delay_overflow_check: bool = False
    optimizers: int = 1
    loss_ids: bool = False
    joint: bool = False
    window: int = 2000
    min_loss_scale: float | None = None
    max_loss_scale: float = 2.0**24
    overflows: tuple[tuple[int, int, int], ...] = ()
    left_out: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The fields that differ from the default."""
        default = Scenario()
        changed = [f"{k}={v}" for k, v in vars(self).items() if v != vars(default)[k]]
        return ", ".join(changed) or "default"


class CountingSGD(torch.optim.SGD):
    """Counts the steps it takes."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, lr=lr, momentum=0.9)
        self.taken = 0

    def step(self, closure: Any = None) -> Any:
        """Take a step."""
        self.taken += 1
        return super().step(closure)


def scenarios() -> Iterator[Scenario]:
    """All scenarios, at every level."""
    for level in ("O0", "O1", "O2", "O3"):
        yield from _of_level(level)


def _of_level(level: str) -> Iterator[Scenario]:
    yield Scenario(level)
    yield Scenario(level, window=3)
    yield Scenario(level, window=2, overflows=((4, 0, 0),))
    yield Scenario(level, window=2, max_loss_scale=2.0**17)
    yield Scenario(level, max_loss_scale=2.0**10)
    yield Scenario(
        level, min_loss_scale=2.0**15, overflows=tuple((step, 0, 0) for step in range(1, 6))
    )
    yield Scenario(level, loss_scale=128.0, overflows=((3, 0, 0),), window=2)
    yield Scenario(level, loss_scale=1.0)
    yield Scenario(level, overflows=((3, 0, 0),), delay_overflow_check=True)
    yield Scenario(level, overflows=((3, 0, 0),), left_out=(3,))
    for micro in ((0,), (1,), (2,), (0, 1, 2)):
        overflows = tuple((2, m, 0) for m in micro)
        yield Scenario(level, micro_batches=3, overflows=overflows)
        yield Scenario(level, micro_batches=3, overflows=overflows, delay_unscale=True)
        yield Scenario(level, micro_batches=3, overflows=overflows, window=5)
    for ids, joint, which in itertools.product((False, True), (False, True), ((0,), (1,), (0, 1))):
        yield Scenario(
            level,
            optimizers=2,
            loss_ids=ids,
            joint=joint,
            window=4,
            overflows=tuple((3, 0, w) for w in which),
        )


def run(scenario: Scenario, amp: Any) -> list[Any]:
    """Per step the (scale, unskipped) of every loss scaler and whether each optimizer stepped."""
    torch.manual_seed(0)
    models = [torch.nn.Linear(4, 3) for _ in range(scenario.optimizers)]
    optimizers = [CountingSGD(model.parameters(), lr=0.01) for model in models]
    losses = 1 if scenario.joint else scenario.optimizers
    models, optimizers = amp.initialize(
        models,
        optimizers,
        opt_level=scenario.level,
        verbosity=0,
        loss_scale=scenario.loss_scale,
        num_losses=losses if scenario.loss_ids else 1,
        min_loss_scale=scenario.min_loss_scale,
        max_loss_scale=scenario.max_loss_scale,
    )
    for scaler in amp._amp_state.loss_scalers:
        scaler._scale_seq_len = scenario.window
    rows: list[Any] = []
    for step in range(STEPS):
        before = [optimizer.taken for optimizer in optimizers]
        for micro in range(scenario.micro_batches):
            _backward(scenario, amp, models, optimizers, step, micro)
        for optimizer in optimizers:
            if step not in scenario.left_out:
                optimizer.step()
            optimizer.zero_grad()
        scales = [[s.loss_scale(), s._unskipped] for s in amp._amp_state.loss_scalers]
        taken = [o.taken - b for o, b in zip(optimizers, before, strict=True)]
        rows.append([scales, taken])
    return rows


def _backward(
    scenario: Scenario, amp: Any, models: Any, optimizers: Any, step: int, micro: int
) -> None:
    inputs = torch.linspace(-1, 1, 8).reshape(2, 4) * (1 + step + micro)
    # Small losses keep fp16 gradients far from overflowing by themselves.
    each = [1e-4 * F.mse_loss(model(inputs).float(), torch.ones(2, 3)) for model in models]
    units = [(sum(each), list(range(len(models))))] if scenario.joint else []
    units = units or [(loss, [index]) for index, loss in enumerate(each)]
    delay = scenario.delay_unscale and micro < scenario.micro_batches - 1
    for index, (loss, members) in enumerate(units):
        with amp.scale_loss(
            loss,
            [optimizers[m] for m in members],
            loss_id=index if scenario.loss_ids else 0,
            delay_unscale=delay,
            delay_overflow_check=scenario.delay_overflow_check,
        ) as scaled:
            scaled.backward()
            for member in members:
                if (step, micro, member) in scenario.overflows:
                    models[member].weight.grad[0, 0] = float("inf")
