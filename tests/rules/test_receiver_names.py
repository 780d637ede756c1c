"""What a method calls its object decides nothing: the same program gets the same edits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amp_migrate import migrate_source
from amp_migrate.settings import Settings

FIXTURES = Path(__file__).parents[2] / "fixtures"
NATIVE = Settings(api="torch.cuda.amp")
APEX = Settings(only_fixes=True)


def _renamed(text: str, *methods: str) -> str:
    """Return a program whose methods, or some of them, call their object `this`."""
    if not methods:
        return re.sub(r"\bself\b", "this", text)
    for method in methods:
        body = re.compile(rf"(    def {method}\(self.*?)(?=\n    def |\n\n\n)", re.S)
        text = body.sub(lambda found: _renamed(found[1]), text)
    return text


@pytest.mark.parametrize(
    "name",
    [
        "fixes/plain_backward_in_method",
        "fixes/mmcv_plain_backward",
    ],
)
def test_all_methods_call_their_object_otherwise(name: str) -> None:
    text = (FIXTURES / name / "before.py").read_text(encoding="utf-8")
    wanted = _renamed(migrate_source(text, settings=NATIVE).text)
    assert migrate_source(_renamed(text), settings=NATIVE).text == wanted != _renamed(text)


def test_the_method_that_steps_calls_its_object_otherwise() -> None:
    """The backward of another method names the optimizer as that one has it."""
    name = FIXTURES / "fixes/plain_backward_in_method/before.py"
    text = name.read_text(encoding="utf-8")
    fixed = migrate_source(text, settings=APEX).text
    assert "amp.scale_loss(loss, self.optimizer)" in fixed
    assert migrate_source(_renamed(text, "update"), settings=APEX).text == _renamed(fixed, "update")
