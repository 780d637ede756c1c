"""Hooks that a library runs for every batch: what one leaves unscaled meets the next backward."""

from __future__ import annotations

from check.trainings.planted import Training

_MAIN = """from hooks import Accumulate
from LIBRARY import BASES
import torch
IMPORT

def main(network, loader, half):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    START
    runner = Runner(network, optimizer)
    HAND
    runner.register_hook(Accumulate(every=2))
    runner.run(loader, 3)
"""
_BEFORE = """from LIBRARY import BASES
from apex import amp


class Accumulate(Hook):
    def __init__(self, every):
        self.every = every

    def after_batch(self, runner):
        loss = runner.outputs["loss"] / self.every
        with amp.scale_loss(loss, runner.optimizer) as scaled_loss:
            scaled_loss.backward()
        self.finish(runner)

    def finish(self, runner):
        if self.every_n_batches(runner, self.every):
            self.clip(runner.model.parameters())
            runner.optimizer.step()
            runner.optimizer.zero_grad()
"""
_AFTER = """from LIBRARY import BASES


class Accumulate(Hook):
    def __init__(self, every):
        self.every = every

    def after_batch(self, runner):
        loss = runner.outputs["loss"] / self.every
        runner.scaler.scale(loss).backward()
        self.finish(runner)

    def finish(self, runner):
        if self.every_n_batches(runner, self.every):
            runner.scaler.unscale_(runner.optimizer)
            self.clip(runner.model.parameters())
            runner.scaler.step(runner.optimizer)
            runner.scaler.update()
            runner.optimizer.zero_grad()
"""
_UNSCALES = "            runner.scaler.unscale_(runner.optimizer)\n"
_TEST = "        if self.every_n_batches(runner, self.every):\n"


def _texts(library: str, *, migrated: bool) -> dict[str, str]:
    start = 'network, optimizer = amp.initialize(network, optimizer, opt_level="O1")'
    made = (
        "scaler = torch.cuda.amp.GradScaler()\n"
        "    network.forward = torch.cuda.amp.autocast()(type(network).forward).__get__(network)"
    )
    texts = {"train.py": _MAIN, "hooks.py": _AFTER if migrated else _BEFORE}
    edits = {
        "LIBRARY": library,
        "BASES": "Hook, Runner",
        "IMPORT": "" if migrated else "from apex import amp\n",
        "START": made if migrated else start,
        "    HAND\n": "    runner.scaler = scaler\n" if migrated else "",
    }
    for old, new in edits.items():
        texts = {path: text.replace(old, new) for path, text in texts.items()}
    return texts


HOOKS_RUN_AGAIN = tuple(
    Training(
        f"a hook of {library} that accumulates",
        _texts(library, migrated=False),
        _texts(library, migrated=True),
        {
            "it unscales in every round": (
                (_TEST, _UNSCALES[4:] + _TEST),
                (f"{_TEST}{_UNSCALES}", _TEST),
            )
        },
        claims=tuple(("AMP120", "train.py", line) for line in range(1, 20)),
    )
    for library in ("mmcv.runner", "engines", "fastcore")
)
