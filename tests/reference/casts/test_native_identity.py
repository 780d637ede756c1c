"""Trainings under the reference equal their native form bit for bit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from amp_migrate.equivalence import reference
from reference.training import Program, train_apex, train_native


def _programs() -> Iterator[Program]:
    for level, model, optimizer in itertools.product(
        ("O0", "O1", "O2"), ("mlp", "cnn"), ("sgd", "adam")
    ):
        base = {"level": level, "model": model, "optimizer": optimizer}
        yield Program(**base)
        yield Program(**base, clip=0.3)
        yield Program(**base, loss_scale=128.0, clip=0.3)
        yield Program(**base, overflows=((1, 0), (2, 0), (4, 0)), clip=0.3)
        yield Program(**base, growth=2, overflows=((3, 0),))
        yield Program(**base, micro_batches=3, clip=0.3)
        yield Program(**base, micro_batches=3, loss_scale=128.0)
        for micro in range(3):
            yield Program(**base, micro_batches=3, overflows=((2, micro),), clip=0.3)
        yield Program(**base, micro_batches=3, overflows=((2, 0), (2, 1), (2, 2)))
    for level, optimizer in itertools.product(("O0", "O1"), ("sgd", "adam")):
        yield Program(level, optimizer=optimizer, micro_batches=3, delay=True, clip=0.3)
        for micro in range(3):
            yield Program(
                level, optimizer=optimizer, micro_batches=3, delay=True, overflows=((2, micro),)
            )
    for optimizer in ("sgd", "adam"):
        yield Program("O0", optimizer=optimizer, loss_scale=1.0, clip=0.3)
        yield Program("O0", optimizer=optimizer, loss_scale=1000.0, clip=0.3)
        yield Program("O1", optimizer=optimizer, loss_scale=1.0)


def _name(program: Program) -> str:
    default = vars(Program("O0"))
    return "-".join(f"{k}:{v}" for k, v in vars(program).items() if k == "level" or v != default[k])


@pytest.mark.parametrize("program", list(_programs()), ids=_name)
def test_training_is_bit_identical_to_native(program: Program, amp: Any) -> None:
    """Losses, norms, skips, scales, parameters and optimizer state, step by step."""
    apex = train_apex(program, amp)
    reference.uninstall()
    native = train_native(program)
    assert apex == native
    assert len({row.parameters for row in apex}) > program.steps // 2
    assert not any(apex[step].taken for step, _ in program.overflows)
