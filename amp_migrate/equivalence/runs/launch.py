"""Run the user's command once, recorded."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import amp_migrate
from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.runs.records import Crash, Run, read_crash, read_folder
from amp_migrate.stopping import held
from amp_migrate.words import os_reason

Progress = Callable[[str, int, int], None]
_INJECT = Path(__file__).parent / "inject" / "sitecustomize.py"
_TAIL_LINES = 6


@dataclasses.dataclass(frozen=True)
class Launch:
    """A command, the folder it runs in, and how long it may take.

    `tree` is the copy of the project, `originals` the folders it stands for: arguments, PYTHONPATH
    entries and import paths inside them are moved to the copy. `inside` is the folder of the
    project the command starts in. `show` lets the program's output through.
    """

    command: tuple[str, ...]
    tree: Path
    originals: tuple[Path, ...] = ()
    inside: Path = Path()
    timeout: float = 1800.0
    show: bool = False

    def moved(self, text: str) -> str:
        """Return `text` with the original project's folder replaced by the copy's."""
        for original in self.originals:
            text = re.sub(re.escape(str(original)) + r"(?![\w.-])", str(self.tree), text)
        return text


def run(launch: Launch, label: str, config: CaptureConfig, progress: Progress) -> Run:
    """Run `launch` and read what it recorded. Never raises for what the program does."""
    with tempfile.TemporaryDirectory(prefix="amp-migrate-run-") as folder:
        home = Path(folder)
        records = home / "records"
        records.mkdir()
        config = dataclasses.replace(
            config,
            record_dir=str(records),
            roots=tuple((str(original), str(launch.tree)) for original in launch.originals),
        )
        config.write(home / "config.json")
        environment = _environment(launch, config, _injection(home), home / "config.json")
        started = time.monotonic()
        returncode, tail = _execute(launch, label, config, environment, records, progress)
        processes, notes = read_folder(records)
        crash = read_crash(records) if returncode != 0 else None
    return Run(
        label=label,
        processes=processes,
        notes=notes,
        returncode=returncode,
        failure=_failure(returncode, tail, crash),
        seconds=time.monotonic() - started,
        crash=crash,
    )


def _injection(home: Path) -> Path:
    """Make a folder that holds sitecustomize and this package alone, for any interpreter."""
    folder = home / "inject"
    folder.mkdir()
    shutil.copy(_INJECT, folder / "sitecustomize.py")
    (folder / "amp_migrate").symlink_to(Path(amp_migrate.__file__).parent)
    return folder


def _interpreters(injection: Path, path: str) -> Path:
    """Make a folder of `python` commands that put `injection` back where a script replaces PYTHONPATH."""
    folder = injection / "bin"
    folder.mkdir()
    for name in ("python", "python3"):
        real = shutil.which(name, path=path)
        if real is not None:
            command = folder / name
            command.write_text(
                f"#!/bin/sh\nexport PYTHONPATH={shlex.quote(str(injection))}${{PYTHONPATH:+:$PYTHONPATH}}\n"
                f'exec {shlex.quote(real)} "$@"\n',
                encoding="utf-8",
            )
            command.chmod(0o755)
    return folder


def _environment(
    launch: Launch, config: CaptureConfig, injection: Path, config_path: Path
) -> dict[str, str]:
    environment = dict(os.environ)
    inherited = launch.moved(environment.get("PYTHONPATH", ""))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(injection), inherited]))
    environment["AMP_MIGRATE_VERIFY"] = str(config_path)
    environment["PYTHONHASHSEED"] = str(config.seed)
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if config.device == "cpu" or not config.light:
        # The compiler sees neither the recording nor a redirected device, and picks its own kernels.
        environment["TORCHDYNAMO_DISABLE"] = "1"
    if config.device == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = ""
        environment.setdefault("OMP_NUM_THREADS", "1")
    if sys.prefix != sys.base_prefix:  # `python` means the environment this tool runs in
        programs = str(Path(sys.executable).parent)
        environment["PATH"] = os.pathsep.join([programs, environment.get("PATH", "")])
    if os.name == "posix":
        first = str(_interpreters(injection, environment.get("PATH", os.defpath)))
        environment["PATH"] = os.pathsep.join([first, environment.get("PATH", os.defpath)])
    return environment


def _execute(
    launch: Launch,
    label: str,
    config: CaptureConfig,
    environment: dict[str, str],
    records: Path,
    progress: Progress,
) -> tuple[int, str]:
    """Return the exit code (124 past the time limit) and the last lines of the output."""
    with tempfile.TemporaryFile() as output:
        process: subprocess.Popen[bytes] | None = None
        try:
            with (
                held() as stop_if_asked
            ):  # a signal before the name is bound would lose the process
                process = subprocess.Popen(
                    [launch.moved(word) for word in launch.command],
                    cwd=launch.tree / launch.inside,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=None if launch.show else output,
                    stderr=None if launch.show else subprocess.STDOUT,
                    start_new_session=True,
                )
            stop_if_asked()
            deadline = time.monotonic() + launch.timeout
            while process.poll() is None:
                if time.monotonic() > deadline:
                    return 124, f"no end after {launch.timeout:g} s"
                time.sleep(0.02)
                progress(label, _rows(records), config.steps)
        except OSError as error:
            if process is not None:
                raise
            return 127, f"{launch.command[0]}: {os_reason(error)}"
        finally:  # also where this program is stopped: the copies that the command works in go
            if process is not None:
                _kill(process)
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines()
    return process.returncode, "\n".join(lines[-_TAIL_LINES:])


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End what the command started and left behind (DataLoader workers, stuck ranks)."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def _rows(records: Path) -> int:
    """Return how many iterations the furthest process has recorded."""
    counts = [path.read_bytes().count(b'{"kind": "iteration"') for path in records.glob("*.jsonl")]
    return max(counts, default=0)


def _failure(returncode: int, tail: str, crash: Crash | None) -> str:
    if returncode == 0:
        return ""
    if crash is not None:
        return crash.error
    return tail.splitlines()[-1].strip() if tail else f"exit code {returncode}"
