"""Contexts without gradients around what runs in an autocast block: chosen, nested without end, around a generator."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.check import faults
from amp_migrate.protocol.faults import Breach

_HEAD = """
import torch
import torch.nn.functional as F

net, head = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
scaler = torch.cuda.amp.GradScaler()
"""
_UPDATE = """
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
"""
_RECURSIVE = """
def walk(nodes, x, deep):
    for node in nodes:
        if node.frozen:
            with torch.no_grad():
                walk(node.inner, x, deep)
                node.seen = {0}(x)
        else:
            with torch.enable_grad():
                walk(node.inner, x, not deep)
                with torch.set_grad_enabled(deep):
                    walk(node.others, x, deep)

for x, nodes in loader:
    with torch.cuda.amp.autocast():
        with torch.no_grad():
            walk(nodes, x, True)
        loss = F.mse_loss(net(x), x)
"""
_CHOSEN = """
def evaluated(x, train):
    with torch.set_grad_enabled(train):
        return head(x)

for x, train in loader:
    with torch.cuda.amp.autocast():
        for part in x:
            evaluated(part, train)
        {0}(x)
        loss = F.mse_loss(net(x), x)
"""
_GENERATOR = """
@torch.no_grad()
def wanted():
    for x in loader:
        yield x, {0}(x)

with torch.cuda.amp.autocast():
    for x, target in wanted():
        losses.append(F.mse_loss(net(x), target))
for loss in losses:
"""
_NESTED = """
def target(x):
    with torch.enable_grad(), torch.no_grad(), torch.enable_grad():
        with torch.no_grad():
            return {0}(x)

for x in loader:
    with torch.cuda.amp.autocast(), torch.no_grad(), torch.enable_grad(), torch.no_grad():
        seen = target(x)
    with torch.cuda.amp.autocast():
        with torch.no_grad():
            seen = target(x)
        loss = F.mse_loss(net(x), seen)
"""
_ALL = {"recursive": _RECURSIVE, "generator": _GENERATOR, "nested": _NESTED}


def _breaches(text: str, network: str) -> list[Breach]:
    text = f"{_HEAD}{text.format(network)}{_UPDATE}"
    return [fault.breach for fault in faults(build({"train.py": Tree("train.py", text)}))]


@pytest.mark.parametrize("text", _ALL.values(), ids=_ALL)
def test_a_network_that_ran_without_gradients_is_found(text: str) -> None:
    """A block has cast its weights, however many contexts were around that, and whoever was called in between."""
    assert _breaches(text, "net") == [Breach.CACHED]


@pytest.mark.parametrize("text", _ALL.values(), ids=_ALL)
def test_another_network_that_did_is_no_matter(text: str) -> None:
    assert _breaches(text, "head") == []


def test_what_chose_to_go_without_gradients_has_them_again_behind_it() -> None:
    """A forward behind ``set_grad_enabled`` runs with the gradients that were there before."""
    assert _breaches(_CHOSEN, "F.relu") == []
    assert _breaches(_CHOSEN.replace("return head", "return net"), "F.relu") == [Breach.CACHED]
