"""What is said of a level that a setting has where nobody chooses one, and that Apex raised for."""

from __future__ import annotations

import pytest

from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

_PARSED = """import argparse
import torch
import torch.nn.functional as F
from apex import amp

parser = argparse.ArgumentParser()
parser.add_argument("--level"{option})
args = parser.parse_args()
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}model, optimizer = amp.initialize(model, optimizer, opt_level=args.level)
for _ in range(3):
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""
_SETTINGS = """class Settings:
    def __init__(self, epochs, level{default}):
        self.epochs = epochs
        self.level = level{kept}
"""
_ANNOTATED = _SETTINGS.replace("    def", "    level: str\n\n    def")
_FIT = """import torch
import torch.nn.functional as F
from apex import amp
from settings import Settings

def fit(model, settings, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level=settings.level)
    for x, y in batches:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

fit(torch.nn.Linear(4, 4), Settings(3), [])
"""


def _said(**texts: str) -> list[str]:
    sources = [Source.from_bytes(f"{name}.py", text.encode()) for name, text in texts.items()]
    result = migrate(sources, Settings())
    found = [f.message for f in result.plan.findings() if f.code == "AMP102"]
    return [message for message in found if "nobody chooses a level" in message]


@pytest.mark.parametrize("option", ["", ", type=str", ', choices=["O1", "O2"]', ", default=None"])
def test_an_option_without_a_default_is_none(option: str) -> None:
    """Apex raised for None, which is not O0."""
    (message,) = _said(train=_PARSED.format(option=option, before=""))

    assert message.startswith("`args.level` is None where")
    assert "Apex raised" in message


@pytest.mark.parametrize("level", ["01", "o1", "fp16"])
def test_a_default_may_be_no_level(level: str) -> None:
    """A zero in the place of the letter, say."""
    (message,) = _said(train=_PARSED.format(option=f', default="{level}"', before=""))

    assert f"`args.level` is '{level}' where" in message


def test_a_constructor_may_keep_such_a_default_in_another_file() -> None:
    """The parameter has it, and the attribute is read."""
    for text in (_SETTINGS, _ANNOTATED):
        (message,) = _said(settings=text.format(default='="01"', kept=""), fit=_FIT)

        assert "`settings.level` is '01' where" in message


@pytest.mark.parametrize(
    ("option", "before"),
    [
        (', default="O1"', ""),
        (', default="O0"', ""),
        (", required=True", ""),
        ("", "if args.level is None:\n    args.level = 'O1'\n"),
        ("", "parser.set_defaults(level='O2')\n"),
    ],
)
def test_nothing_is_said_of_a_level_that_is_chosen(option: str, before: str) -> None:
    """By a default, by whoever runs the program, or by the program itself."""
    assert not _said(train=_PARSED.format(option=option, before=before))


def test_nothing_is_said_where_the_program_asks_for_it() -> None:
    """Without a level it trains without Apex."""
    text = _PARSED.format(option="", before="").replace(
        "model, optimizer = amp", "if args.level:\n    model, optimizer = amp"
    )
    text = text.replace(
        "    with amp.scale_loss(loss, optimizer) as scaled_loss:\n        scaled_loss.backward()\n",
        "    if args.level:\n        with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
        "            scaled_loss.backward()\n    else:\n        loss.backward()\n",
    )
    assert not _said(train=text)


def test_an_option_of_another_program_says_nothing_of_a_setting() -> None:
    """The field of a class is what has the level."""
    fields = "class Settings:\n    epochs: int = 3\n    level: str = 'O1'\n"
    texts = {"settings": fields, "fit": _FIT.replace("Settings(3)", "Settings()")}

    assert not _said(**texts, train=_PARSED.split("model =")[0].format(option=""))
    assert _said(settings=fields.replace("O1", "01"), fit=texts["fit"])


@pytest.mark.parametrize(
    ("default", "kept"), [('="O1"', ""), ("", ""), ('="01"', ' if epochs else "O1"')]
)
def test_nothing_is_said_of_a_constructor_that_knows_its_level(default: str, kept: str) -> None:
    """Which has a level by default, is always given one, or chooses it."""
    assert not _said(settings=_SETTINGS.format(default=default, kept=kept), fit=_FIT)
