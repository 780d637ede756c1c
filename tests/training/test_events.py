"""The events of a training, and what each concerns."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.flow.cfg.build import Graphs
from amp_migrate.project import build
from amp_migrate.training.events import Kind
from amp_migrate.training.recognise import Training

_HEAD = """import torch
import torch.nn.functional as F
gen, disc = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
opt_g = torch.optim.Adam(gen.parameters())
opt_d = torch.optim.Adam(disc.parameters())
scaler = torch.cuda.amp.GradScaler()
disc(x).sum().backward()
scaler.step(opt_g)
scaler.step(opt_d)
"""
_G, _D = frozenset({0}), frozenset({1})


def _events(text: str) -> list[tuple[Kind, frozenset[int] | None, bool | None]]:
    training = Training(build({"train.py": Tree("train.py", _HEAD + text)}), Graphs())
    start = _HEAD.count("\n")
    found = [
        (node.lineno, node.col_offset, event)
        for events in training.by_function.values()
        for node, held in events.items()
        for event in held
        if getattr(node, "lineno", 0) > start
    ]
    ordered = sorted(found, key=lambda item: item[:2])
    return [(e.kind, e.optimizers, e.scaled) for _, _, e in ordered if e.kind is not Kind.FORWARD]


CASES = {
    "a library that is given weights": (
        "for n, p in gen.named_parameters():\n    lib.look(p)",
        (Kind.READ_GRAD, _G, False),
    ),
    "backward of one network": ("scaler.scale(gen(x).sum()).backward()", (Kind.BACKWARD, _G, True)),
    "backward through both": (
        "loss = disc(gen(x)).sum()\nloss.backward()",
        (Kind.BACKWARD, _G | _D, False),
    ),
    "backward of what is not known": ("loss.backward()", (Kind.BACKWARD, None, False)),
    "backward through what a list was given": (
        "outs = []\nouts.append(disc(x))\nloss = torch.cat(outs).sum()\nloss.backward()",
        (Kind.BACKWARD, _D, False),
    ),
    "backward through what took the name of a list": (
        "outs = []\nouts.append(disc(x))\nouts = torch.cat(outs).detach()\nloss = (outs * gen(x)).sum()\nloss.backward()",
        (Kind.BACKWARD, _G, False),
    ),
    "scaled under a name": (
        "loss = disc(x).sum()\nloss = scaler.scale(loss)\nloss.backward()",
        (Kind.BACKWARD, _D, True),
    ),
    "scaled on one of two ways": (
        "loss = disc(x).sum()\nif a:\n    loss = scaler.scale(loss)\nloss.backward()",
        (Kind.BACKWARD, _D, None),
    ),
    "clip": ("torch.nn.utils.clip_grad_norm_(disc.parameters(), 1)", (Kind.READ_GRAD, _D, False)),
    "clip of a list": (
        "params = list(gen.parameters())\ntorch.nn.utils.clip_grad_norm_(params, 1)",
        (Kind.READ_GRAD, _G, False),
    ),
    "norm of one weight": ("print(gen.weight.grad.norm())", (Kind.READ_GRAD, None, False)),
    "a function that nothing is known of": (
        "unknown(disc.parameters())",
        (Kind.READ_GRAD, _D, False),
    ),
    "plain step": ("opt_d.step()", (Kind.STEP, _D, False)),
    "zero_grad of a network": ("disc.zero_grad()", (Kind.ZERO_GRAD, _D, False)),
    "gradients put in place": (
        "for p in disc.parameters():\n    p.grad = p.data.new(p.size()).fill_(1)",
        (Kind.PUT_GRAD, _D, False),
    ),
    "gradients set to None": (
        "for p in disc.parameters():\n    p.grad = None",
        (Kind.ZERO_GRAD, _D, False),
    ),
    "weights moved in place": (
        "with torch.no_grad():\n    for p in disc.parameters():\n        p -= step",
        (Kind.WEIGHT_WRITE, None, False),
    ),
    "binary cross entropy": ("F.binary_cross_entropy(x, y)", (Kind.REFUSES_CASTS, None, False)),
}


@pytest.mark.parametrize(("text", "event"), CASES.values(), ids=CASES)
def test_events_are_recognised(
    text: str, event: tuple[Kind, frozenset[int] | None, bool | None]
) -> None:
    """Each statement is the one event that it is."""
    assert _events(text) == [event]


QUIET = (
    "for n, p in gen.named_parameters():\n    lib.look(n)",
    "import re, os\nfor p in gen.parameters():\n    re.search('a', p)\n    os.path.join(p, p)",
    "for p in disc.parameters():\n    torch.distributed.all_reduce(p.grad)",
    "for p in disc.parameters():\n    p.grad.mul_(0.5)",
    "for p in disc.parameters():\n    p.grad = p.data.new(p.size()).zero_()",
    "for p in disc.parameters():\n    p.grad = torch.full_like(p, 0.0).to(p.device)",
    "print([p.grad is None for p in disc.parameters()])",
    "print(disc.weight.grad.shape)",
    "x = torch.zeros(2, requires_grad=True)\nprint(x.grad.sum())",
    "total = sum(p.numel() for p in disc.parameters())",
    "total = 0\nfor p in disc.parameters():\n    total += p.numel()",
    "for price in prices:\n    price -= 1",
    "torch.save(disc.state_dict(), path)",
    "print(torch.isfinite(disc.weight.grad).all())",
    "print(disc.weight.grad.norm() / scaler.get_scale())",
    "from copy import deepcopy\nema = deepcopy(disc)",
    "torch.nn.utils.parameters_to_vector(disc.parameters())",
    "engine.backward(disc(x).sum())",
    "import logging\nlogging.getLogger('train').info('%s', disc)",
    "text = '{}'.format(disc)",
    "disc._load_from_state_dict(state, prefix, disc, True, [], [], [])",
    "held = {'size': 2, 'net': disc}\nfor name in held:\n    part = held[name]\n    features.view(-1, part)",
    "held = {'size': 2, 'net': disc}\nfor name in held:\n    part = held[name]\n    options.pop(name, part)",
)


@pytest.mark.parametrize("text", QUIET)
def test_what_leaves_gradients_alone_is_no_event(text: str) -> None:
    """Neither shapes, averages, inputs nor weights are reads of gradients."""
    assert _events(text) == []
