"""Steps inside a block of Apex, on gradients that it scaled there: a rule of the run has to speak of them."""

from __future__ import annotations

from dataclasses import replace

from check.trainings.planted import Training, skipped_apart

_BEGUN = """from contextlib import contextmanager, ExitStack
import torch
from apex import amp

first = torch.nn.Linear(4, 2)
second = torch.nn.Linear(4, 2)
one = torch.optim.SGD(first.parameters(), lr=0.1)
two = torch.optim.SGD(second.parameters(), lr=0.1)
[first, second], [one, two] = amp.initialize([first, second], [one, two], opt_level="O1")

@contextmanager
def scaled(loss):
    with amp.scale_loss(loss, one) as scaled_loss:
        yield scaled_loss

for x in []:
    one.zero_grad()
    loss = first(x).pow(2).mean()
"""
_AFTER = """from contextlib import contextmanager, ExitStack
import torch

first = torch.nn.Linear(4, 2)
second = torch.nn.Linear(4, 2)
one = torch.optim.SGD(first.parameters(), lr=0.1)
two = torch.optim.SGD(second.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()

@contextmanager
def scaled(loss):
    yield scaler.scale(loss)

for x in []:
    one.zero_grad()
    with torch.cuda.amp.autocast():
        loss = first(x).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(one)
    scaler.update()
"""
_WAYS = {
    "inside the block": ("    with amp.scale_loss(loss, one) as scaled_loss:",),
    "inside what a generator enters": ("    with scaled(loss) as scaled_loss:",),
    "inside the block, beside an optimizer that is not stepped": (
        "    with amp.scale_loss(loss, [one, two]) as scaled_loss:",
    ),
    "behind a block that a stack holds open": (
        "    with ExitStack() as stack:",
        "        scaled_loss = stack.enter_context(amp.scale_loss(loss, one))",
    ),
}


def _training(name: str, lines: tuple[str, ...]) -> Training:
    body = [*lines, "        scaled_loss.backward()", "        one.step()", ""]
    before = _BEGUN + "\n".join(body)
    claim = "AMP212", "train.py", before.count("\n")
    after = _AFTER
    if "generator" in name:
        entered = f"{lines[0]}\n        scaled_loss.backward()\n"
        after = after.replace("    scaler.scale(loss).backward()\n", entered)
    found = Training(f"a step {name}", {"train.py": before}, {"train.py": after}, {}, (claim,))
    return skipped_apart(found)


STEPPED = tuple(_training(name, lines) for name, lines in _WAYS.items())
UNCLAIMED = tuple(replace(training, claims=training.claims[1:]) for training in STEPPED)
