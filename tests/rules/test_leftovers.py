"""Variables that only served Apex go, and those of the same name in other functions stay."""

from __future__ import annotations

from textwrap import dedent

import pytest

from amp_migrate.api import migrate_source
from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

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


LAYERS = """
    import torch


    def build(width):
        {inside}
        return apex.normalization.FusedLayerNorm(width)


    def train(model, loader):
        {other}
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer = apex.amp.initialize(model, optimizer, opt_level="O1")
        for x in loader:
            loss = model(x).mean()
            with apex.amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    "top", ["", "import apex\n", "try:\n    import apex\nexcept ImportError:\n    pass\n"]
)
def test_an_import_goes_from_the_scope_that_no_longer_reads_it(top: str) -> None:
    text = dedent(LAYERS).format(inside="import apex", other="pass" if top else "import apex")
    result = migrate_source(top + text)

    assert "autocast" in result.text
    assert result.text.count("import apex") == 1
    assert "def build(width):\n    import apex\n" in result.text
    assert "except" not in result.text


def test_an_import_stays_at_the_top_for_another_function() -> None:
    text = dedent(LAYERS).format(inside="pass", other="import apex")
    result = migrate_source("import apex\n" + text)

    assert "autocast" in result.text
    assert result.text.startswith("import apex\n")
    assert result.text.count("import apex") == 1


_FEATURES = """\
from apex import amp


def features(audio, level):
    if level == 1:
        with amp.disable_casts():
            return audio * 2
    return audio * 2
"""
_TRAINS = """\
import torch
from apex import amp
from features import features


def main(loader):
    net = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    amp.lists.functional_overrides.FP16_FUNCS.remove("linear")
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(net(features(x, 1)), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
"""


def test_what_is_left_in_a_helper_names_the_training_that_keeps_it() -> None:
    """The import stays for the use, and the use stays for what is left elsewhere, not for its own line."""
    sources = [
        Source.from_bytes("features.py", _FEATURES.encode()),
        Source.from_bytes("train.py", _TRAINS.encode()),
    ]
    found = migrate(sources, Settings()).plan.findings()
    (kept,) = (f for f in found if f.path == "features.py" and "disable_casts" in f.message)
    assert kept.cause is not None
    assert kept.cause.path == "train.py"
