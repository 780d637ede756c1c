"""What breaks the protocol of native AMP is found on the path that does; what does not is left alone."""

from __future__ import annotations

import textwrap

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.check import faults
from amp_migrate.protocol.faults import Breach, Fault

_HEAD = """
import torch
import torch.nn.functional as F

scaler = torch.cuda.amp.GradScaler()
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
_LOSS = "with torch.cuda.amp.autocast():\n    loss = F.cross_entropy(model(x), y)\n"
_BACKWARD = "scaler.scale(loss).backward()\n"
_STEP = "scaler.step(optimizer)\nscaler.update()\noptimizer.zero_grad()\n"
_CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
_HEADED = f"""
if {{first}}:
    optimizer.zero_grad()
{_LOSS}{_BACKWARD}
if {{last}}:
    scaler.step(optimizer)
    scaler.update()
"""
_UNSCALE = "scaler.unscale_(optimizer)\n"


def _faults(text: str, **others: str) -> list[Fault]:
    files = {"train.py": text, **{f"{name}.py": more for name, more in others.items()}}
    return faults(build({path: Tree(path, t) for path, t in files.items()}))


def _loop(body: str, head: str = _HEAD, above: str = "") -> str:
    return f"{head}\n{above}\nfor i, (x, y) in enumerate(loader):\n" + textwrap.indent(body, "    ")


def _kinds(text: str, **others: str) -> set[Breach]:
    return {fault.breach for fault in _faults(text, **others)}


RIGHT = {
    "plain": _LOSS + _BACKWARD + _STEP,
    "clip": _LOSS + _BACKWARD + _UNSCALE + _CLIP + _STEP,
    "window": _LOSS
    + _BACKWARD
    + "if (i + 1) % 4 == 0:\n"
    + textwrap.indent(_UNSCALE + _CLIP + _STEP, "    "),
    "step at the head of the next": "if i and i % 4 == 0:\n"
    + textwrap.indent(_UNSCALE + _CLIP + _STEP, "    ")
    + _LOSS
    + _BACKWARD,
    "skipped when not finite": _LOSS
    + _BACKWARD
    + _UNSCALE
    + "norm = "
    + _CLIP
    + "if not torch.isfinite(norm):\n    scaler.update()\n    optimizer.zero_grad()\n    continue\n"
    + _STEP,
    "same flag twice": _LOSS + _BACKWARD + f"if clip:\n    {_UNSCALE}if clip:\n    {_CLIP}" + _STEP,
    "gradients averaged": _LOSS
    + _BACKWARD
    + "for p in model.parameters():\n    torch.distributed.all_reduce(p.grad)\n    p.grad /= 2\n"
    + _STEP,
    "norm divided by the scale": _LOSS
    + _BACKWARD
    + "for p in model.parameters():\n    print(p.grad.norm() / scaler.get_scale())\n"
    + _STEP,
    "gradients asked for": _LOSS
    + _BACKWARD
    + "done = [p for p in model.parameters() if p.grad is not None]\n"
    + _STEP,
    "backward of a penalty": _LOSS
    + _BACKWARD
    + "scaler.scale(model.weight.norm()).backward()\n"
    + _STEP,
    "no_grad in a block of its own": "with torch.no_grad(), torch.cuda.amp.autocast():\n    wanted = model(x)\n"
    + _LOSS
    + _BACKWARD
    + _STEP,
    "cleared at the head of each window": _HEADED.format(first="i % 4 == 0", last="i % 4 == 3"),
    "cleared at the head of windows, the last closed early": _HEADED.format(
        first="i % k == 0", last="not (i + 1) % k or i == len(loader) - 1"
    ),
    "scale set": _LOSS + _BACKWARD + _STEP + "scaler.update(min(scaler.get_scale(), 2.0**13))\n",
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_trainings_break_nothing(body: str) -> None:
    """Whatever order of statements trains right is left alone."""
    assert [f.sentence() for f in _faults(_loop(body))] == []


WRONG = {
    "clip without unscale_": (_LOSS + _BACKWARD + _CLIP + _STEP, Breach.SCALED_READ),
    "clip above the backward": (
        "if i:\n" + textwrap.indent(_CLIP + _STEP, "    ") + _LOSS + _BACKWARD,
        Breach.SCALED_READ,
    ),
    "unscale_ under another flag": (
        _LOSS + _BACKWARD + f"if a:\n    {_UNSCALE}if b:\n    {_CLIP}" + _STEP,
        Breach.SCALED_READ,
    ),
    "noise on gradients": (
        _LOSS + _BACKWARD + "for p in model.parameters():\n    p.grad += noise(p)\n" + _STEP,
        Breach.SCALED_READ,
    ),
    "groups of the optimizer": (
        _LOSS
        + _BACKWARD
        + "for group in optimizer.param_groups:\n    for p in group['params']:\n        p.grad.clamp_(-1, 1)\n"
        + _STEP,
        Breach.SCALED_READ,
    ),
    "one weight": (
        _LOSS + _BACKWARD + "print(model.weight.grad.abs().max())\n" + _STEP,
        Breach.SCALED_READ,
    ),
    "unknown function given parameters": (
        _LOSS + _BACKWARD + "CLIPS[kind](model.parameters())\n" + _STEP,
        Breach.SCALED_READ,
    ),
    "update missing on continue": (
        _LOSS
        + _BACKWARD
        + _UNSCALE
        + "if bad(loss):\n    optimizer.zero_grad()\n    continue\n"
        + _STEP,
        Breach.UNSCALED_TWICE,
    ),
    "unscale_ on every micro-batch": (
        _LOSS + _BACKWARD + _UNSCALE + _CLIP + "if i % 4 == 3:\n" + textwrap.indent(_STEP, "    "),
        Breach.UNSCALED_TWICE,
    ),
    "update missing": (
        _LOSS + _BACKWARD + "scaler.step(optimizer)\noptimizer.zero_grad()\n",
        Breach.STEPPED_TWICE,
    ),
    "update on a skipped step": (
        _LOSS + _BACKWARD + "if i % 2:\n    scaler.step(optimizer)\nscaler.update()\n",
        Breach.UPDATE_ALONE,
    ),
    "update on every micro-batch": (
        _LOSS
        + _BACKWARD
        + "if i % 4 == 3:\n    scaler.step(optimizer)\n    optimizer.zero_grad()\nscaler.update()\n",
        Breach.RESCALED,
    ),
    "unscale_ behind the step": (
        _LOSS + _BACKWARD + "scaler.step(optimizer)\n" + _UNSCALE + "scaler.update()\n",
        Breach.UNSCALED_LATE,
    ),
    "a second backward behind unscale_ and zero_grad": (
        _LOSS
        + _BACKWARD
        + _UNSCALE
        + "optimizer.zero_grad()\n"
        + _LOSS
        + _BACKWARD
        + "scaler.step(optimizer)\nscaler.update()\n",
        Breach.SCALED_STEP,
    ),
    "plain step": (
        _LOSS + _BACKWARD + "optimizer.step()\noptimizer.zero_grad()\n",
        Breach.SCALED_STEP,
    ),
    "plain step behind unscale_": (
        _LOSS
        + _BACKWARD
        + _UNSCALE
        + _CLIP
        + "optimizer.step()\nscaler.update()\noptimizer.zero_grad()\n",
        Breach.UNCHECKED,
    ),
    "plain backward": (_LOSS + "loss.backward()\n" + _STEP, Breach.DIVIDED),
    "cleared at the head of other windows": (
        _HEADED.format(first="i % 3 == 0", last="i % 4 == 3"),
        Breach.MIXED,
    ),
    "cleared at the head of windows that begin elsewhere": (
        _HEADED.format(first="(i + 1) % 4 == 0", last="i % 4 == 0"),
        Breach.MIXED,
    ),
    "cleared at the head of windows counted by what the loop sets anew": (
        _HEADED.format(first="i % 4 == 0", last="i % 4 == 3") + "for i in range(9):\n    pass\n",
        Breach.MIXED,
    ),
    "cleared at the head of windows closed at the end of others": (
        _HEADED.format(first="i % k == 0", last="(i + 1) % k == 0 or i == len(others) - 1"),
        Breach.MIXED,
    ),
    "plain backward of a penalty": (
        _LOSS + _BACKWARD + "model.weight.norm().backward()\n" + _STEP,
        Breach.MIXED,
    ),
    "backward behind unscale_": (
        _LOSS + _BACKWARD + _UNSCALE + _BACKWARD + _STEP,
        Breach.AFTER_UNSCALE,
    ),
    "step inside the block": (
        "with torch.cuda.amp.autocast():\n    loss = F.cross_entropy(model(x), y)\n"
        "    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n",
        Breach.CAST_STEP,
    ),
    "binary cross entropy": (
        "with torch.cuda.amp.autocast():\n    loss = F.binary_cross_entropy(model(x), y)\n"
        + _BACKWARD
        + _STEP,
        Breach.REFUSED,
    ),
    "no_grad first in one block": (
        "with torch.cuda.amp.autocast():\n    with torch.no_grad():\n        wanted = model(x)\n"
        "    loss = F.mse_loss(model(x), wanted)\n" + _BACKWARD + _STEP,
        Breach.CACHED,
    ),
}


@pytest.mark.parametrize(("body", "breach"), WRONG.values(), ids=WRONG)
def test_wrong_trainings_are_found(body: str, breach: Breach) -> None:
    """Each breach is found, with a way that ends where it happens."""
    found = [f for f in _faults(_loop(body)) if f.breach is breach]
    assert found
    assert found[0].way[-1] == found[0].place


HELPERS = {
    "walks over the parameters": (
        "def look(net):\n    for p in net.parameters():\n        p.grad.add_(1)\n",
        "look(model)\n",
    ),
    "applied to every module": (
        "def clamp(m):\n    if hasattr(m, 'weight'):\n        m.weight.grad.clamp_(-1, 1)\n",
        "model.apply(clamp)\n",
    ),
    "kept the parameters": (
        "class Watch:\n    def __init__(self, net):\n        self.kept = list(net.parameters())\n\n"
        "    def update(self):\n        return [p.grad.norm() for p in self.kept]\n\nwatch = Watch(model)\n",
        "print(watch.update())\n",
    ),
    "recursion": (
        "def walk(m, n):\n    if n:\n        walk(m, n - 1)\n    print(m.weight.grad.sum())\n",
        "walk(model, 3)\n",
    ),
}


@pytest.mark.parametrize(("helper", "call"), HELPERS.values(), ids=HELPERS)
def test_helpers_that_read_gradients_are_followed(helper: str, call: str) -> None:
    """A helper reads scaled gradients before `unscale_`, and true ones after it."""
    before = _loop(_LOSS + _BACKWARD + call + _UNSCALE + _CLIP + _STEP, above=helper)
    after = _loop(_LOSS + _BACKWARD + _UNSCALE + call + _CLIP + _STEP, above=helper)
    assert _kinds(before) == {Breach.SCALED_READ}
    assert _kinds(after) == set()


def test_files_and_classes_are_followed() -> None:
    """Backward, clip and step may stand in methods of several files."""
    base = """
import torch

class Base:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()

    def update(self):
        CLIP
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
"""
    trainer = """
import torch
import torch.nn.functional as F
from base import Base

class Trainer(Base):
    def train(self, loader):
        for x, y in loader:
            with torch.cuda.amp.autocast():
                loss = F.cross_entropy(self.model(x), y)
            self.scaler.scale(loss).backward()
            self.update()

Trainer(torch.nn.Linear(4, 2)).train([])
"""
    clip = "torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)"
    right = base.replace("CLIP", f"self.scaler.unscale_(self.optimizer)\n        {clip}")
    assert _kinds(trainer, base=right) == set()
    assert _kinds(trainer, base=base.replace("CLIP", clip)) == {Breach.SCALED_READ}


def test_each_optimizer_is_followed_by_itself() -> None:
    """What one network clips says nothing of the gradients of the other."""
    text = """
import torch

def train(loader):
    gen, disc = torch.nn.Linear(2, 4), torch.nn.Linear(4, 1)
    opt_g = torch.optim.Adam(gen.parameters())
    opt_d = torch.optim.Adam(disc.parameters())
    scaler = torch.cuda.amp.GradScaler()
    for z, real in loader:
        with torch.cuda.amp.autocast():
            loss_d = disc(gen(z).detach()).mean() - disc(real).mean()
        opt_d.zero_grad()
        scaler.scale(loss_d).backward()
        scaler.unscale_(opt_d)
        torch.nn.utils.clip_grad_norm_(disc.parameters(), 1.0)
        scaler.step(opt_d)
        with torch.cuda.amp.autocast():
            loss_g = -disc(gen(z)).mean()
        opt_g.zero_grad()
        scaler.scale(loss_g).backward()
        scaler.step(opt_g)
        scaler.update()

train([])
"""
    assert _kinds(text) == set()
    assert _kinds(text.replace("unscale_(opt_d)", "unscale_(opt_g)")) >= {Breach.SCALED_READ}


def _guarded(made: str, used: str) -> str:
    body = (
        f"if {made}:\n    scaler = torch.cuda.amp.GradScaler()\nfor x in loader:\n"
        f"    loss = model(x)\n    if {used}:\n        scaler.scale(loss).backward()\n    optimizer.step()\n"
    )
    return "import torch\n\ndef train(args, model, optimizer, loader):\n" + textwrap.indent(
        body, "    "
    )


def test_a_scaler_that_some_path_does_not_make_is_found() -> None:
    """Made under a flag, it may be used under that flag, and nowhere else."""
    assert Breach.UNBOUND not in _kinds(_guarded("args.fp16", "args.fp16"))
    assert Breach.UNBOUND in _kinds(_guarded("args.fp16", "True"))
    assert Breach.UNBOUND in _kinds(_guarded("args.fp16", "args.amp"))


@pytest.mark.parametrize("options", ["args", "opt"])
def test_an_attribute_for_a_scaler_that_another_option_shields_is_found(options: str) -> None:
    """What counts is the option that a test asks for, not what the object with the options is called."""
    text = """
import torch

class Trainer:
    def __init__(self, args, optimizer):
        self.args, self.optimizer = args, optimizer
        if args.fp16:
            self.scaler = torch.cuda.amp.GradScaler()

    def step(self, loss):
        if self.args.amp:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
"""
    text = text.replace("args", options)
    assert Breach.UNBOUND in _kinds(text)
    assert Breach.UNBOUND not in _kinds(text.replace(f"self.{options}.amp", f"self.{options}.fp16"))


def test_code_without_a_scaler_is_not_asked() -> None:
    """Plain training has no protocol to break."""
    assert (
        _faults(
            "import torch\nloss.backward()\nclip_grad_norm_(model.parameters())\noptimizer.step()\n"
        )
        == []
    )
