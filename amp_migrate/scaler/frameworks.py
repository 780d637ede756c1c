"""Libraries that run the model themselves, and call hooks of a project for the backward and the step: what theirs are called."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Framework:
    """Where the classes of a library are, how the names of those end that a project derives, and what is called of them.

    `makers` give a runner; `registry` takes classes of the project as such. `events` are what a hook is called for with
    the runner alone, which is called `given` elsewhere and has what the model gave in `outputs`. `batch` is the method of a
    network that takes a batch and the optimizer.
    """

    name: str
    package: str
    hook: str
    runner: str
    makers: frozenset[str]
    registry: str
    events: frozenset[str]
    given: str
    outputs: str
    batch: str


MMCV = Framework(
    name="mmcv",
    package="mmcv.runner",
    hook="Hook",
    runner="Runner",
    makers=frozenset({"build_runner"}),
    registry="RUNNERS.register_module",
    events=frozenset(
        f"{when}_{what}"
        for when in ("before", "after")
        for what in ("run", "epoch", "iter", "train_epoch", "train_iter", "val_epoch", "val_iter")
    ),
    given="runner",
    outputs="outputs",
    batch="train_step",
)
