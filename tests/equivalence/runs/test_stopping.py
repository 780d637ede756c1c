"""A verification that is stopped ends the program it runs and leaves no folder behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.runs import launch
from amp_migrate.stopping import Stopped, raised

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.usefixtures("heard")
TRAINING = """
import os, time
with open(os.environ["STARTED"], "w") as file:
    file.write(str(os.getpid()))
while True:
    time.sleep(0.02)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_ends_the_program_and_removes_the_copies(
    tmp_path: Path, number: signal.Signals
) -> None:
    """As a CI system that ran out of time, or a terminal that was closed."""
    for folder in ("before", "after", "scratch"):
        (tmp_path / folder).mkdir()
    for side in ("before", "after"):
        (tmp_path / side / "train.py").write_text(TRAINING)
    started = tmp_path / "started"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "STARTED": str(started),
        "TMPDIR": str(tmp_path / "scratch"),
    }
    sides = ["--before", str(tmp_path / "before"), "--after", str(tmp_path / "after")]
    command = [sys.executable, "-m", "amp_migrate", "verify", *sides, "--", "python", "train.py"]

    process = subprocess.Popen(
        command, cwd=tmp_path / "before", env=environment, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not (started.exists() and started.read_text()) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.05)
    assert os.listdir(tmp_path / "scratch")
    process.send_signal(number)
    _, said = process.communicate(timeout=60)

    assert said.splitlines()[-1] == "stopped"
    assert process.returncode == 3
    assert os.listdir(tmp_path / "scratch") == []
    assert not Path(f"/proc/{started.read_text()}").exists()


def test_signal_while_the_program_is_started_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything holds the new process, as on a busy machine."""
    started = []

    class Signalled(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(launch.subprocess, "Popen", Signalled)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    asked = launch.Launch((sys.executable, "-c", "import time; time.sleep(600)"), tmp_path)

    with pytest.raises(Stopped), raised():
        launch.run(asked, "before", CaptureConfig(""), lambda *_: None)

    assert [process.returncode for process in started] == [-signal.SIGKILL]
