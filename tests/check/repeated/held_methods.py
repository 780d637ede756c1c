"""Methods of optimizers that something else holds, and faults in what is done by them: left out, moved, or not scaled."""

from __future__ import annotations

from check.trainings.planted import Training, files, skipped_apart

_BEFORE = """
# file: train.py
import torch
from apex import amp


def train(model, optimizer, loader):
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    {held}
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        {step}
        {clear}
"""
_AFTER = """
# file: train.py
import torch


def train(model, optimizer, loader):
    scaler = torch.cuda.amp.GradScaler()
    {held}
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        {step}
        scaler.update()
        {clear}
"""
_SCALED = "scaler.step(optimizer)"
_TAKEN = "step = optimizer.step\n        step()"
_HELD = {
    "a variable": ("clear = optimizer.zero_grad", "clear()"),
    "one of two variables": ("other, clear = len, optimizer.zero_grad", "clear()"),
    "a list": ("clears = [optimizer.zero_grad]", "for clear in clears:\n            clear()"),
    "a dict": ("clears = {'all': optimizer.zero_grad}", "clears['all']()"),
    "a partial": (
        "clear = __import__('functools').partial(optimizer.zero_grad, set_to_none=True)",
        "clear()",
    ),
    "a tuple that a loop goes over": (
        "pass",
        "for clear in (optimizer.zero_grad, model.zero_grad):\n            clear()",
    ),
}
_SEVERAL_BEFORE = """
# file: train.py
import torch
from apex import amp


def train(body, head, slow, fast, loader):
    (body, head), (slow, fast) = amp.initialize([body, head], [slow, fast], opt_level="O1")
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(head(body(x)), y)
        with amp.scale_loss(loss, [slow, fast]) as scaled_loss:
            scaled_loss.backward()
        slow.step()
        fast.step()
        for clear in {clears}:
            clear()


body, head = torch.nn.Linear(4, 5), torch.nn.Linear(5, 3)
train(body, head, torch.optim.SGD(body.parameters(), 0.1), torch.optim.SGD(head.parameters(), 0.1), [])
"""
_SEVERAL_AFTER = """
# file: train.py
import torch


def train(body, head, slow, fast, loader):
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = torch.nn.functional.cross_entropy(head(body(x)), y)
        scaler.scale(loss).backward()
        scaler.step(slow)
        scaler.step(fast)
        scaler.update()
        for clear in {clears}:
            clear()


body, head = torch.nn.Linear(4, 5), torch.nn.Linear(5, 3)
train(body, head, torch.optim.SGD(body.parameters(), 0.1), torch.optim.SGD(head.parameters(), 0.1), [])
"""
_LISTS = {
    "methods": "[slow.zero_grad, fast.zero_grad]",
    "lambdas": "[lambda: slow.zero_grad(), lambda: fast.zero_grad()]",
    "what a comprehension makes": "[each.zero_grad for each in (slow, fast)]",
}


def _one(name: str, held: str, clear: str) -> Training:
    return Training(
        f"cleared by {name}",
        files(_BEFORE.format(held=held, clear=clear, step="optimizer.step()")),
        files(_AFTER.format(held=held, clear=clear, step=_SCALED)),
        {
            "a step of its own, by a variable": ((_SCALED, _TAKEN),),
            "it clears no more": ((clear.strip(), "pass"),),
            "it clears before the step": (
                (f"        {_SCALED}\n", f"        {clear}\n        {_SCALED}\n"),
            ),
        },
    )


HELD_METHODS = (
    *(_one(name, *held) for name, held in _HELD.items()),
    Training(
        "stepped by a variable of the round",
        files(_BEFORE.format(held="pass", clear="optimizer.zero_grad()", step=_TAKEN)),
        files(_AFTER.format(held="pass", clear="optimizer.zero_grad()", step=_SCALED)),
        {
            "it is not scaled": ((_SCALED, _TAKEN),),
            "another is stepped": ((_SCALED, "scaler.step(model)"),),
            "it is stepped twice": ((_SCALED, f"{_SCALED}\n        {_SCALED}"),),
        },
    ),
    *(
        skipped_apart(
            Training(
                f"a loop over {name} clears two optimizers",
                files(_SEVERAL_BEFORE.format(clears=clears)),
                files(_SEVERAL_AFTER.format(clears=clears)),
                {
                    "it clears none": (("            clear()\n", "            print(clear)\n"),),
                    "it clears one": ((clears, "[slow.zero_grad]"),),
                },
            )
        )
        for name, clears in _LISTS.items()
    ),
)

_EARLY = {
    "a variable": ("step = optimizer.step", "step()"),
    "a list": ("steps = [optimizer.step]", "for step in steps:\n            step()"),
    "a variable of the round before": (
        "step = optimizer.step",
        "step()\n        step = optimizer.step",
    ),
}

TAKEN_EARLY = tuple(
    Training(
        f"stepped by what {name} held before the block, which Apex did not skip",
        files(_BEFORE.format(held=held, clear="optimizer.zero_grad()", step=step)),
        files(_AFTER.format(held="pass", clear="optimizer.zero_grad()", step=_SCALED)),
        {},
    )
    for name, (held, step) in _EARLY.items()
)
