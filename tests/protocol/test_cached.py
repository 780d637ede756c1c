"""What autocast has cached without gradients, where many networks run in one block."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.check import faults
from amp_migrate.protocol.faults import Breach

_NETWORKS = [f"net{number}" for number in range(24)]


def _breaches(network: str) -> list[Breach]:
    """Return what goes wrong where any of several networks run without gradients, and then one with them."""
    made = "".join(f"{name} = torch.nn.Linear(1, 1).cuda()\n" for name in _NETWORKS)
    lists = " + ".join(f"list({name}.parameters())" for name in _NETWORKS[:-1])
    ran = "".join(
        f"            if flags[{number}]:\n                wanted = {name}(x)\n"
        for number, name in enumerate(_NETWORKS[:-1])
    )
    text = (
        "import torch\nimport torch.nn.functional as F\n"
        f"{made}optimizer = torch.optim.SGD({lists} + list({_NETWORKS[-1]}.parameters()), lr=0.1)\n"
        "scaler = torch.cuda.amp.GradScaler()\n"
        "for x, flags in loader:\n"
        "    optimizer.zero_grad()\n"
        "    with torch.cuda.amp.autocast():\n"
        f"        with torch.no_grad():\n{ran}"
        f"        loss = F.mse_loss({network}(x), wanted)\n"
        "    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n"
    )
    return [fault.breach for fault in faults(build({"train.py": Tree("train.py", text)}))]


@pytest.mark.parametrize("network", [_NETWORKS[0], _NETWORKS[11], _NETWORKS[22]])
def test_a_network_that_ran_without_gradients_is_found_among_many(network: str) -> None:
    assert _breaches(network) == [Breach.CACHED]


def test_one_that_did_not_run_without_gradients_is_right_behind_many() -> None:
    assert _breaches(_NETWORKS[-1]) == []


@pytest.mark.parametrize("network", [_NETWORKS[0], _NETWORKS[-1]])
def test_where_there_are_too_many_ways_any_may_be_one_that_ran(
    monkeypatch: pytest.MonkeyPatch, network: str
) -> None:
    monkeypatch.setattr("amp_migrate.protocol.casts.faults._MOST", 10)
    assert _breaches(network) == [Breach.CACHED]
