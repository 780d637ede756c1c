"""Backward passes that are scaled, that stay beside them, and reads of a loss behind its block."""

from __future__ import annotations

import ast

import pytest

from amp_migrate import migrate_source
from amp_migrate.apex.sites import Kind
from amp_migrate.placement.backwards import scaled
from amp_migrate.placement.backwards.behind import read_behind
from amp_migrate.placement.backwards.copies import outdated
from amp_migrate.placement.backwards.freezing import frozen_later
from amp_migrate.placement.backwards.probes import reads_input
from amp_migrate.plan.cannot import Cannot
from amp_migrate.training.steps import Backward
from tests.placement.training import BACKWARD, FORWARD, Training, looped, stepped
from tests.project.helpers import Case

BLOCKS: dict[str, str] = {
    "written as shown": "with amp.scale_loss(loss, optimizer) as s:\n    s.backward()\n",
    "by keywords": "with amp.scale_loss(optimizers=optimizer, loss=loss) as s:\n    s.backward()\n",
    "with a graph kept": "with amp.scale_loss(loss, optimizer) as s:\n    s.backward(retain_graph=True)\n",
    "twice": "with amp.scale_loss(loss, optimizer) as s:\n    s.backward(retain_graph=True)\n    s.backward()\n",
    "computed with": "with amp.scale_loss(loss, optimizer) as s:\n    t = s * 2\n    t.backward()\n",
    "beside another": "with lock, amp.scale_loss(loss, optimizer) as s:\n    s.backward()\n",
    "named as the loss": "with amp.scale_loss(loss, optimizer) as loss:\n    loss.backward()\n",
    "under a test": "with amp.scale_loss(loss, optimizer) as s:\n    if a:\n        s.backward()\n",
}
ODD: dict[str, str] = {
    "no name": "with amp.scale_loss(loss, optimizer):\n    loss.backward()\n",
    "an attribute": "with amp.scale_loss(loss, optimizer) as self.s:\n    self.s.backward()\n",
    "several names": "with amp.scale_loss(loss, optimizer) as (s, t):\n    s.backward()\n",
    "not called": "with amp.scale_loss(loss, optimizer) as s:\n    print(1)\n",
    "two at once": "with amp.scale_loss(a, optimizer) as s, amp.scale_loss(b, optimizer) as t:\n    s.backward()\n    t.backward()\n",
    "used in its own head": "with amp.scale_loss(loss, optimizer) as s, f(s):\n    s.backward()\n",
    "no with": "s = amp.scale_loss(loss, optimizer)\ns.backward()\n",
    "unpacked": "with amp.scale_loss(*given) as s:\n    s.backward()\n",
    "unpacked keywords of a call": "with amp.scale_loss(loss, **given()) as s:\n    s.backward()\n",
    "stored and something else": "t = 0\nwith amp.scale_loss(loss, optimizer) as s:\n    t = s * 2\n    t.backward()\n",
}


def _block(text: str) -> scaled.ScaleLoss:
    case = Training("from apex import amp\n" + text)
    sites = [site for site in case.index.sites if site.kind is Kind.SCALE_LOSS]
    return scaled.read(case.project, sites[0])


@pytest.mark.parametrize("text", BLOCKS.values(), ids=BLOCKS)
def test_blocks_that_are_understood(text: str) -> None:
    """Loss, optimizer and the backward passes of the block are found."""
    block = _block(text)
    assert ast.unparse(block.loss) == "loss"
    assert [ast.unparse(node) for node in block.optimizer_list()] == ["optimizer"]
    assert len(block.backwards) == text.count(".backward(")


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_blocks_that_are_refused(text: str) -> None:
    """What is scaled, or what becomes of it, is not known."""
    with pytest.raises(Cannot) as caught:
        _block(text)
    assert caught.value.code == "AMP902"


BEHIND: dict[str, tuple[str, list[bool]]] = {
    "not at all": ("WITH\n", []),
    "printed": ("WITH\nprint(s)\n", [False]),
    "before the block": ("s = 1\nprint(s)\nWITH\n", []),
    "bound anew": ("WITH\ns = 1\nprint(s)\n", []),
    "bound anew at times": ("WITH\nif a:\n    s = 1\nprint(s)\n", [False]),
    "of two blocks": ("if a:\n    WITH\nelse:\n    WITH\nprint(s)\n", [True]),
    "the next block": ("WITH\nWITH\nprint(s)\n", []),
    "deleted": ("WITH\ndel s\ns = 2\nprint(s)\n", []),
    "in a comprehension": ("WITH\ny = [s for z in x]\n", [False]),
    "its own in a comprehension": ("WITH\ny = [s for s in x]\n", []),
    "in a function inside": ("WITH\ndef f():\n    return s\n", [False]),
    "its own in a function inside": ("WITH\ndef f(s):\n    return s\n", []),
    "in a loop, the round before": ("print(s)\nWITH\n", [False]),
    "by walrus": ("WITH\n(s := 3)\nprint(s)\n", []),
}


@pytest.mark.parametrize(("body", "expected"), BEHIND.values(), ids=BEHIND)
def test_reads_of_a_scaled_loss_behind_its_block(body: str, expected: list[bool]) -> None:
    """Bindings that reach the read count, also those of other blocks."""
    block = "with amp.scale_loss(loss, optimizer) as s:\n    s.backward()"
    lines = []
    for line in body.splitlines():
        space = line[: len(line) - len(line.lstrip())]
        lines += [space + part for part in block.splitlines()] if "WITH" in line else [line]
    training = Training(looped(FORWARD + "\n".join(lines) + "\noptimizer.step()\n"))
    blocks = list(training.context.scaled.values())
    found = read_behind(training.unit, blocks[0], blocks[1:])
    assert [other for _, other in found] == expected


FROZEN: dict[str, tuple[str, bool]] = {
    "a part": ("m = DDP(n)\nfor p in m.module.encoder.parameters():\n    p.requires_grad = False\n", True),
    "some of all": ("m = DDP(n)\nfor k, p in m.named_parameters():\n    if 'e' in k:\n        p.requires_grad_(False)\n", True),
    "some of all of the module": (
        "m = DDP(n)\nfor p in m.module.parameters():\n    if p.odd:\n        p.requires_grad = False\n",
        True,
    ),
    "all of the module": (
        "m = DDP(n)\nfor p in m.module.parameters():\n    p.requires_grad = False\n",
        False,
    ),
    "the whole": ("m = DDP(n)\nfor p in m.parameters():\n    p.requires_grad = False\n", False),
    "before": ("for p in m.encoder.parameters():\n    p.requires_grad = False\nm = DDP(n)\n", False),
    "of another": ("m = DDP(n)\nfor p in t.encoder.parameters():\n    p.requires_grad = False\n", False),
    "something else": ("m = DDP(n)\nfor p in m.encoder.parameters():\n    p.data = 0\n", False),
    "only read": ("m = DDP(n)\nfor p in m.encoder.parameters():\n    print(p.requires_grad)\n", False),
    "no name": ("f(DDP(n))\nfor p in m.encoder.parameters():\n    p.requires_grad = False\n", False),
}  # fmt: skip


@pytest.mark.parametrize(("text", "frozen"), FROZEN.values(), ids=FROZEN)
def test_parts_that_are_frozen_behind_the_wrap(text: str, frozen: bool) -> None:
    """They get no gradient; a network frozen whole is a teacher."""
    case = Case({"m.py": text})
    module = case.project.modules["m.py"]
    assert frozen_later(case.project, module, case.call("m.py", "DDP(n)")) is frozen


PROBES: dict[str, tuple[str, bool]] = {
    "an input": ("x.requires_grad_()\nloss.backward()\ny = x.grad\n", True),
    "an input by flag": ("x.requires_grad = True\nloss.backward()\nprint(x.grad.abs())\n", True),
    "a parameter of the function": ("loss.backward()\nprint(args.grad)\n", True),
    "made so": ("z = torch.zeros(3, requires_grad=True)\nloss.backward()\nprint(z.grad)\n", True),
    "before the backward, a round later": ("x.requires_grad_()\nprint(x.grad)\nloss.backward()\n", True),
    "only cleared": ("x.requires_grad_()\nloss.backward()\nx.grad.zero_()\n", False),
    "only asked for None": ("x.requires_grad_()\nloss.backward()\nprint(x.grad is None)\n", False),
    "a weight": ("loss.backward()\nfor p in model.parameters():\n    p.requires_grad_()\n    print(p.grad)\n", False),
    "given to an optimizer": ("z = torch.zeros(3, requires_grad=True)\no = torch.optim.SGD([z])\nloss.backward()\nprint(z.grad)\n", False),
    "another's": ("loss.backward()\nprint(w.grad)\n", False),
    "set": ("x.requires_grad_()\nloss.backward()\nx.grad = None\n", False),
}  # fmt: skip


@pytest.mark.parametrize(("body", "reads"), PROBES.values(), ids=PROBES)
def test_gradients_of_inputs(body: str, reads: bool) -> None:
    """A plain backward whose input's gradient is read is run for that."""
    training = Training(stepped("optimizer.step()\n" + body))
    call = training.call("train.py", "loss.backward()")
    assert isinstance(call.func, ast.Attribute)
    module = training.project.modules["train.py"]
    backward = Backward(module, training.main, call, call.func.value, (), False)
    assert reads_input(training.made, backward) is reads


CLEAN = "optimizer.zero_grad()\n"
BESIDE: dict[str, tuple[str, bool]] = {
    "cleared behind": (f"{FORWARD}loss.backward()\n{CLEAN}{FORWARD}{BACKWARD}optimizer.step()\n", True),
    "not cleared": (f"x.requires_grad_()\n{FORWARD}loss.backward()\ny = x.grad\n{FORWARD}{BACKWARD}optimizer.step()\n{CLEAN}", False),
    "an input, cleared behind": (f"x.requires_grad_()\n{FORWARD}loss.backward()\ny = x.grad\n{CLEAN}{FORWARD}{BACKWARD}optimizer.step()\n", True),
    "an input, behind the step": (f"{FORWARD}{BACKWARD}optimizer.step()\nx.requires_grad_()\n{FORWARD}loss.backward()\ny = x.grad\n{CLEAN}", True),
    "an input, cleared at times": (f"x.requires_grad_()\n{FORWARD}loss.backward()\ny = x.grad\nif args.a:\n    {CLEAN}{FORWARD}{BACKWARD}optimizer.step()\n", False),
}  # fmt: skip


@pytest.mark.parametrize(("body", "migrates"), BESIDE.values(), ids=BESIDE)
def test_plain_backward_beside_a_scaled_one(body: str, migrates: bool) -> None:
    """What is not cleared before a scaled backward adds would have another scale."""
    training = Training(looped(body) + "main(args, loader)\n")
    if migrates:
        assert training.unit.steps
    else:
        with pytest.raises(Cannot):
            _ = training.context


LOOK = f"{FORWARD}loss.backward()\n"
MOVE = "for p in model.parameters():\n    p.data.sub_(0.1 * p.grad)\n"
SCALED = f"{FORWARD}{BACKWARD}optimizer.step()\n"
COPIES: dict[str, tuple[str, str | None]] = {
    "moved by hand": (f"{LOOK}{MOVE}{CLEAN}{SCALED}", "p.data.sub_(0.1 * p.grad)"),
    "moved in place": (f"{LOOK}for p in model.parameters():\n    p -= p.grad\n{CLEAN}{SCALED}", "p -= p.grad"),
    "not moved": (f"{LOOK}print(model.weight.grad)\n{CLEAN}{SCALED}", None),
    "moved behind what is scaled": (f"{LOOK}{CLEAN}{SCALED}{MOVE}", None),
    "another network moved": (f"{LOOK}for p in twin.parameters():\n    p.data.sub_(0.1)\n{CLEAN}{SCALED}", None),
}  # fmt: skip


@pytest.mark.parametrize(("body", "write"), COPIES.values(), ids=COPIES)
def test_copies_of_weights_that_are_written(body: str, write: str | None) -> None:
    """Apex computed on with the fp16 copies of before until amp.scale_loss ended."""
    training = Training(looped(body, "twin = nn.Linear(2, 2)\n") + "main(args, loader)\n")
    (backward,) = training.unit.beside
    found = outdated(training.unit, backward)
    assert (None if found is None else training.first_line(found)) == write


_STEPPERS = """\
import torch
from apex import amp


class Plain:
    def step(self, loss, optimizer):
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


class Scaled:
    def step(self, loss, optimizer):
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        optimizer.zero_grad()


class Trainer:
    def __init__(self, model, kind, debug):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        {made}
        if kind == "fp16":
            self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level="O1")
            self.stepper = Scaled()
        {behind}

    def fit(self, batches):
        for x, y in batches:
            loss = torch.nn.functional.cross_entropy(self.model(x), y)
            self.stepper.step(loss, self.optimizer)
"""
_PLAIN = "self.stepper = Plain()"


@pytest.mark.parametrize(
    ("made", "behind", "plain"),
    [
        (f'if kind == "fp32": {_PLAIN}', "", True),
        (f'if kind in ("fp32", "tf32"): {_PLAIN}', "", True),
        (f'if kind != "fp16" and debug: {_PLAIN}', "", True),
        ("", f"else: {_PLAIN}", True),
        (_PLAIN, "", False),
        (f"if debug: {_PLAIN}", "", False),
        (f'if kind == "fp32" or debug: {_PLAIN}', "", False),
        (f'if kind == "fp32": {_PLAIN}', f"if debug: {_PLAIN}", False),
    ],
)
def test_what_is_only_made_where_amp_is_off_stays_plain(
    made: str, behind: str, plain: bool
) -> None:
    """Its class needs no GradScaler; one that may run while AMP is on has its losses scaled."""
    text = migrate_source(_STEPPERS.format(made=made, behind=behind)).text
    assert text is not None
    assert ("        loss.backward()\n        optimizer.step()\n" in text) is plain
    assert text.count("scale(loss).backward()") == 2 - plain
