"""What is known of programs, and lets a finding be silent that would hold of others."""

from __future__ import annotations

from typing import Any

import pytest

from amp_migrate.engine import migrate
from amp_migrate.rules.autocast import amp107_evaluation
from amp_migrate.rules.autocast.ungiven import was_not_cast
from amp_migrate.rules.base import Context
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source
from amp_migrate.training.region import Region

EVALUATED = """import torch
from apex import amp


@torch.no_grad()
def agreeing(features, label):
    return (torch.mm(features, features.t()).argmax(1) == label).sum()


@torch.no_grad()
def evaluate(model, loader):
    return sum(agreeing(model(x), y) for x, y in loader)


@torch.no_grad()
def compare(loader):
    other = torch.nn.Linear(3, 2).cuda()
    return [other(x) for x, _ in loader]


def main(args, loader):
    model = torch.nn.Linear(3, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level={level})
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
    print(evaluate(model, loader), compare(loader))
"""


@pytest.mark.parametrize(
    ("level", "left"),
    [('"O1"', []), ("args.level", []), ('"O2"', ["agreeing", "compare"])],
)
def test_what_no_level_of_a_program_can_have_cast(
    level: str, left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At O2, what runs none of the networks that Apex was given."""
    known: list[Context] = []
    cast_at = amp107_evaluation.cast_at

    def watched(context: Context, *given: Any) -> Any:
        known.append(context)
        return cast_at(context, *given)

    monkeypatch.setattr(amp107_evaluation, "cast_at", watched)
    migrate(
        [Source.from_bytes("train.py", EVALUATED.format(level=level).encode())],
        Settings(api="torch.cuda.amp"),
    )
    context = known[0]
    (module,) = context.unit.project.modules.values()
    functions = [
        f for f in module.functions.values() if f.name in ("agreeing", "compare", "evaluate")
    ]
    regions = [Region(module, f, f.node.body[-1], f.node.body[-1]) for f in functions if f.node]

    assert sorted(r.function.name for r in regions if was_not_cast(context, r)) == left
