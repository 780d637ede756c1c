"""What is said of Apex in texts for people, and in help texts of programs that keep parts of it."""

from __future__ import annotations

import json
from pathlib import Path

from shell_support import APEX_PROGRAM, amp_migrate

FUSED = (
    "from apex.optimizers import FusedAdam\n\n\ndef make(weights):\n    return FusedAdam(weights)\n"
)
OPTIONS = """import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--fp16", action="store_true", help="mixed precision by Apex")
parser.add_argument("--fused", action="store_true", help="the fused optimizer of Apex")
"""


def _noted() -> list[tuple[str, int]]:
    done = amp_migrate(".", "--check", "--output-format", "json")
    found = json.loads(done.stdout)["findings"]
    return [(f["path"], f["location"]["row"]) for f in found if f["code"] == "AMP309"]


def test_a_readme_is_named_once_where_nothing_imports_apex(folder: Path) -> None:
    (folder / "train.py").write_text(APEX_PROGRAM)
    (folder / "README.md").write_text("# Net\n\nNeeds Apex:\n\n    pip install ./apex\n")
    (folder / "HISTORY.md").write_text("Apex came\n")
    assert _noted() == [("README.md", 3)]

    (folder / "fused.py").write_text(FUSED)
    assert _noted() == []


def test_help_texts_of_amp_are_named_where_a_fused_optimizer_stays(folder: Path) -> None:
    (folder / "train.py").write_text(OPTIONS + APEX_PROGRAM)
    assert _noted() == [("train.py", 4), ("train.py", 5)]

    (folder / "fused.py").write_text(FUSED)
    assert _noted() == [("train.py", 4)]
