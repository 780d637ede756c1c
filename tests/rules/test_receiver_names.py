"""What a method calls its object decides nothing: the same program gets the same edits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amp_migrate import migrate_project, migrate_source
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


def _migrated(files: dict[str, str], folder: Path) -> dict[str, str]:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    changes = migrate_project([str(folder)], settings=NATIVE).report.changes
    return {Path(change.path).name: change.text for change in changes}


@pytest.mark.parametrize(
    "name",
    [
        "fixes/plain_backward_in_method",
        "fixes/mmcv_plain_backward",
        "several/gan_forward_method",
        "project/optimizer_from_a_registry",
    ],
)
def test_all_methods_call_their_object_otherwise(name: str, tmp_path: Path) -> None:
    before = [*(FIXTURES / name).glob("before.py"), *(FIXTURES / name).glob("before/*.py")]
    files = {path.name: path.read_text(encoding="utf-8") for path in before}
    found = _migrated(files, tmp_path)
    assert found
    wanted = {path: _renamed(text) for path, text in found.items()}
    others = {path: _renamed(text) for path, text in files.items()}
    assert _migrated(others, tmp_path) == wanted


def test_the_method_that_steps_calls_its_object_otherwise() -> None:
    """The backward of another method names the optimizer as that one has it."""
    name = FIXTURES / "fixes/plain_backward_in_method/before.py"
    text = name.read_text(encoding="utf-8")
    fixed = migrate_source(text, settings=APEX).text
    assert "amp.scale_loss(loss, self.optimizer)" in fixed
    assert migrate_source(_renamed(text, "update"), settings=APEX).text == _renamed(fixed, "update")
