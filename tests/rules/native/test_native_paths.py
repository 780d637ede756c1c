"""Mistakes in native code are named on the path that shows them, with their cause; right code stays without a note."""

from __future__ import annotations

from pathlib import Path

import pytest
from rules.native.support import decisions

from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

_HEAD = """\
import torch
from torch.nn.utils import clip_grad_norm_

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
"""
_LOOP = """\
for i, (x, y) in enumerate(loader):
    with torch.cuda.amp.autocast():
        loss = criterion(model(x), y)
    scaler.scale(loss).backward()
"""
_STEP = "    scaler.step(optimizer)\n    scaler.update()\n    optimizer.zero_grad()\n"
_CLIP = "    clip_grad_norm_(model.parameters(), 1.0)\n"
_UNSCALE = "    scaler.unscale_(optimizer)\n"


def _said(text: str, **others: str) -> list[tuple[str, str]]:
    """Return the code and the words of every remark."""
    found = [d.finding for d in decisions(text, **others)]
    return [(f.code, f"{f.path}:{f.span.line} {f.message}; {f.advice}") for f in found]


WRONG = {
    "unscale_ on every micro-batch": (
        _HEAD + _LOOP + _UNSCALE + "    if i % 4 == 3:\n" + _STEP.replace("    ", "        "),
        "AMP407",
        "program.py:11 it comes around again without scaler.update() in between, at which torch raises an error; "
        "call scaler.unscale_(optimizer) once, right before scaler.step(optimizer)",
    ),
    "a step that is skipped": (
        _HEAD
        + _LOOP
        + _UNSCALE
        + "    if bad(loss):\n        optimizer.zero_grad()\n        continue\n"
        + _STEP,
        "AMP407",
        "program.py:11 it comes around again without scaler.update() in between, at which torch raises an error; "
        "call scaler.update() also where the step is skipped",
    ),
    "update before the step": (
        _HEAD
        + _LOOP
        + "    scaler.update()\n    if i % 4 == 3:\n        scaler.step(optimizer)\n        optimizer.zero_grad()\n",
        "AMP410",
        "program.py:11 the loss scale may change here, before scaler.step(optimizer) at program.py:13 divides the "
        "gradients by it; call scaler.update() only after scaler.step(optimizer)",
    ),
    "step beside the scaler": (
        _HEAD + _LOOP + "    optimizer.step()\n    scaler.update()\n" + _STEP,
        "AMP412",
        "program.py:11 this steps on gradients that scaler.scale(loss).backward() at program.py:10 left multiplied by "
        "the loss scale; write scaler.step(optimizer), and call scaler.update() after it",
    ),
    "step behind unscale_": (
        _HEAD + _LOOP + _UNSCALE + _CLIP + "    optimizer.step()\n    scaler.update()\n",
        "AMP412",
        "program.py:13 this steps even where scaler.unscale_(optimizer) at program.py:11 found an infinite gradient; "
        "write scaler.step(optimizer), and call scaler.update() after it",
    ),
    "unscale_ after the step": (
        _HEAD + _LOOP + "    scaler.step(optimizer)\n" + _UNSCALE + "    scaler.update()\n",
        "AMP413",
        "program.py:12 scaler.step(optimizer) at program.py:11 came first and has unscaled these gradients: torch "
        "raises an error; move scaler.unscale_(optimizer) before scaler.step(optimizer)",
    ),
    "backward after unscale_": (
        _HEAD + _LOOP + _UNSCALE + "    scaler.scale(model(x).norm()).backward()\n" + _STEP,
        "AMP414",
        "program.py:12 scaler.unscale_(optimizer) at program.py:11 came first: these gradients stay multiplied by the "
        "loss scale; call scaler.unscale_(optimizer) after the last backward pass, right before the step",
    ),
    "backward inside the block": (
        _HEAD + _LOOP.replace("    scaler.scale", "        scaler.scale") + _STEP,
        "AMP411",
        "program.py:10 this backward pass runs inside the autocast block at program.py:8; end the block before it",
    ),
    "no_grad first in one block": (
        _HEAD
        + "for x, y in loader:\n    with torch.cuda.amp.autocast():\n        with torch.no_grad():\n"
        "            wanted = model(x)\n        loss = criterion(model(x), wanted)\n"
        "    scaler.scale(loss).backward()\n" + _STEP,
        "AMP409",
        "program.py:11 model(x) at program.py:10 ran in the same autocast block without gradients: on torch before 2.13 "
        "the weights get no gradients from this forward; give model(x) an autocast block of its own",
    ),
    "a store into what a test asks": (
        _HEAD
        + "seen = {}\nfor i, x in enumerate(loader):\n    loss = model(x).mean()\n    if seen:\n"
        "        loss.backward()\n    else:\n        scaler.scale(loss).backward()\n    seen[i] = x\n"
        "    if i % 2:\n        scaler.step(optimizer)\n        scaler.update()\n        optimizer.zero_grad()\n",
        "AMP404",
        "program.py:11 this backward is not scaled, but scaler.step(optimizer) at program.py:16 divides its gradients by "
        "the loss scale; write scaler.scale(loss).backward()",
    ),
    "a scaler that a test makes": (
        "import torch\n\ndef train(args, model, optimizer, loader):\n    if args.fp16:\n"
        "        scaler = torch.cuda.amp.GradScaler()\n    for x in loader:\n"
        "        scaler.scale(model(x)).backward()\n        scaler.step(optimizer)\n        scaler.update()\n",
        "AMP408",
        "program.py:7 scaler is used here on a path that does not make it; it is made under a test, at program.py:5; "
        "make scaler on every path, with GradScaler(enabled=...) in place of the test",
    ),
}


@pytest.mark.parametrize(("text", "code", "words"), WRONG.values(), ids=WRONG)
def test_mistake_is_named_with_its_cause(text: str, code: str, words: str) -> None:
    """The note stands at the mistake, and names the line that makes it one."""
    assert (code, words) in _said(text)


_HELPER = (
    "import torch\n\ndef show(net):\n    for p in net.parameters():\n        print(p.grad.norm())\n"
)


def test_reading_in_another_file_names_the_backward() -> None:
    """A helper reads scaled gradients, or true ones, as the loop that calls it stands."""
    import_ = "from look import show\n"
    wrong = _said(
        import_ + _HEAD + _LOOP + "    show(model)\n" + _UNSCALE + _CLIP + _STEP, look=_HELPER
    )
    assert wrong == [
        (
            "AMP402",
            "look.py:5 gradients are read here while they are still multiplied by the loss scale of "
            "scaler.scale(loss).backward() at program.py:11; call scaler.unscale_(optimizer) once before it",
        )
    ]
    assert not _said(
        import_ + _HEAD + _LOOP + _UNSCALE + "    show(model)\n" + _CLIP + _STEP, look=_HELPER
    )


_TWO = """\
import torch

def train(loader, gen, disc):
    opt_g = torch.optim.Adam(gen.parameters())
    opt_d = torch.optim.Adam(disc.parameters())
    scaler = torch.cuda.amp.GradScaler()
    for z, real in loader:
        opt_d.zero_grad()
        with torch.cuda.amp.autocast():
            loss_d = disc(gen(z).detach()).mean() - disc(real).mean()
        scaler.scale(loss_d).backward()
        scaler.unscale_(opt_d)
        torch.nn.utils.clip_grad_norm_(disc.parameters(), 1.0)
        scaler.step(opt_d)
        opt_g.zero_grad()
        with torch.cuda.amp.autocast():
            loss_g = -disc(gen(z)).mean()
        scaler.scale(loss_g).backward()
        scaler.step(opt_g)
        scaler.update()
"""
_FLAGGED = """\
import torch

def train(args, model, loader, use_amp, adam):
    if adam:
        optimizer = torch.optim.Adam(model.parameters())
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if use_amp:
        scaler = torch.cuda.amp.GradScaler()
    for x in loader:
        if use_amp:
            with torch.cuda.amp.autocast():
                loss = model(x).sum()
            scaler.scale(loss).backward()
        else:
            loss = model(x).sum()
            loss.backward()

        def step():
            if use_amp:
                scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if use_amp:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
            optimizer.zero_grad()

        step()
"""
_LISTED = """\
import torch

def run(a, b, loader):
    first = torch.optim.Adam(a.parameters())
    second = torch.optim.Adam(b.parameters())
    train([a, b], [first, second], torch.cuda.amp.GradScaler(), loader)

def train(nets, optimizers, scaler, loader):
    a, b = nets
    first, second = optimizers
    for x in loader:
        first.zero_grad()
        scaler.scale(a(x).mean()).backward()
        scaler.unscale_(first)
        scaler.step(first)
        second.zero_grad()
        scaler.scale(b(x).mean()).backward()
        scaler.unscale_(second)
        scaler.step(second)
        scaler.update()
"""
_FOLDS = """\
import torch

def train(nets, loader):
    for net in nets:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        for x in loader:
            scaler.scale(net(x).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
"""
_STAND_IN = """\
import torch
try:
    from torch.cuda.amp import GradScaler
except ImportError:
    class GradScaler:
        def scale(self, loss):
            return loss
        def unscale_(self, optimizer):
            pass
        def step(self, optimizer):
            optimizer.step()
        def update(self):
            pass

def train(model, optimizer, loader):
    scaler = GradScaler()
    for x in loader:
        optimizer.zero_grad()
        scaler.scale(model(x).sum()).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
"""
_TEACHER = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.body(x)

def train(loader):
    student, teacher = Net(), Net()
    optimizer = torch.optim.SGD(student.body.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x in loader:
        with torch.cuda.amp.autocast():
            with torch.no_grad():
                goal = teacher(x)
            loss = (student(x) - goal).pow(2).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
RIGHT = {
    "two optimizers": _TWO,
    "a teacher of the same class": _TEACHER,
    "a flag, a closure and two kinds of optimizer": _FLAGGED,
    "optimizers in a list": _LISTED,
    "one scaler for each fold": _FOLDS,
    "a stand-in for old torch": _STAND_IN,
    "parameters given to unseen code": _HEAD + _LOOP + "    ema(model.parameters())\n" + _STEP,
    "a clip of unseen code": _HEAD + _LOOP + "    engine.clip_grad_norm_(model.parameters())\n" + _STEP,
    "unseen code has the scaler": _HEAD + _LOOP + "    engine.finish(scaler)\n" + _CLIP + _STEP,
    "another one steps on the penalty": _HEAD + "for x in loader:\n    model(x).norm().backward()\n"
    "    other.step()\n    optimizer.zero_grad()\n    scaler.scale(model(x).sum()).backward()\n" + _STEP,
    "a part without gradients": _HEAD
    + "for x, y in loader:\n    with torch.cuda.amp.autocast():\n        with torch.no_grad():\n"
    "            wanted = model.encode(x)\n        loss = criterion(model(x), wanted)\n"
    "    scaler.scale(loss).backward()\n" + _STEP,
    "a scaler under the test that makes it": "import torch\n\ndef train(args, model, optimizer, loader):\n"
    "    if args.fp16:\n        scaler = torch.cuda.amp.GradScaler()\n    for x in loader:\n        loss = model(x)\n"
    "        if args.fp16:\n            scaler.scale(loss).backward()\n            scaler.step(optimizer)\n"
    "            scaler.update()\n        else:\n            loss.backward()\n            optimizer.step()\n",
    "a flag outlives a store into something else": "import torch\n\nclass Backward:\n    def __init__(self):\n"
    "        self.scaler = torch.cuda.amp.GradScaler()\n\n    def __call__(self, loss, optimizer, update=True):\n"
    "        self.scaler.scale(loss).backward()\n        if update:\n            self.scaler.step(optimizer)\n"
    "            self.scaler.update()\n\ndef train(model, optimizer, loader, backward, rates, use_amp, every):\n"
    "    optimizer.zero_grad()\n    for i, x in enumerate(loader):\n        for group in optimizer.param_groups:\n"
    "            group['lr'] = rates[i]\n        loss = model(x).mean() / every\n        if use_amp:\n"
    "            backward(loss, optimizer, update=(i + 1) % every == 0)\n"
    "            if (i + 1) % every == 0:\n                optimizer.zero_grad()\n        else:\n"
    "            loss.backward()\n            if (i + 1) % every == 0:\n                optimizer.step()\n"
    "                optimizer.zero_grad()\n\nmodel = torch.nn.Linear(4, 2)\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    "backward = Backward()\nfor epoch in range(9):\n    train(model, optimizer, loader, backward, rates, amp, 4)\n",
    "a list that holds itself": _HEAD
    + _LOOP
    + "    found = [loss]\n    found = [found, x]\n    show(found)\n"
    + _STEP,
    "a call that may raise": _HEAD
    + _LOOP
    + _UNSCALE
    + "    try:\n        report(loss)\n    except ValueError:\n        pass\n"
    + _STEP,
}  # fmt: skip


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_what_may_be_right_gets_no_note(text: str) -> None:
    """What is not certain is not named."""
    assert _said(text) == []


def test_student_that_is_its_own_teacher_is_named() -> None:
    """Two calls of one object run the same weights, whatever part of it an optimizer trains."""
    said = _said(_TEACHER.replace("goal = teacher(x)", "goal = student(x)"))
    assert [code for code, _ in said] == ["AMP409"]


def test_notes_of_a_project_are_those_of_its_mistakes() -> None:
    """Beside Apex, each native file is read with the others; a correct one gets no note."""
    folder = Path(__file__).resolve().parents[3] / "fixtures/rest/native_paths/before"
    sources = [Source.from_bytes(p.name, p.read_bytes()) for p in sorted(folder.glob("*.py"))]
    notes = migrate(sources, Settings(api="torch.cuda.amp")).plan.findings()
    native = [(f.path, f.span.line, f.code) for f in notes if f.code.startswith("AMP4")]
    assert native == [("trainer.py", 17, "AMP411"), ("watch.py", 4, "AMP402")]
