"""Variables that only served Apex go, and those of the same name in other functions stay."""

from __future__ import annotations

from textwrap import dedent

import pytest

from amp_migrate.api import migrate_source

TRAINING = """
    import torch
    from apex import amp


    class Run:
        def train(self, model, loader):
            models, shown = [model], 0
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model, optimizer = amp.initialize(model, optimizer, opt_level="O1", verbosity=shown)
            for x in loader:
                loss = model(x).mean()
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            return models

    """
OTHERS = {
    "another function": "def report(values):\n    shown, unit = 3, 'ms'\n    print(shown, unit, values)\n",
    "a method of the same name": (
        "class Report:\n    def train(self, values):\n        shown, unit = 3, 'ms'\n        print(shown, unit, values)\n"
    ),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_pair_keeps_what_its_own_function_reads(other: str) -> None:
    result = migrate_source(dedent(TRAINING) + other)

    assert "        models = [model]\n" in result.text
    assert other in result.text
