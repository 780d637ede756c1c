"""The codemod writes the same whatever the order of sets is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source
from generated.choices.features import draw
from generated.written.program import build

for seed in range(40):
    files = build(draw(seed)).files.items()
    result = migrate([Source.from_bytes(name, data) for name, data in files], Settings())
    print([(o.path, o.after, o.findings) for o in result.outcomes], result.plan)
"""


def test_hash_seed_does_not_matter() -> None:
    """Texts, findings and plans agree under two hash seeds."""
    assert _printed("1") == _printed("2")


def _printed(seed: str) -> str:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.count("GradScaler") > 40
    return done.stdout
