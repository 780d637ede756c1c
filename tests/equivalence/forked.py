"""Record a program in a forked process, so that torch is imported once for hundreds of trials."""

from __future__ import annotations

import atexit
import os
import runpy
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import NoReturn

import fork_server
import pytest
import torch
import torch._dynamo  # imported by the first optimizer; in the server once for all trials

import amp_migrate.check.judging.judge  # what every trial and migration needs, so too
import amp_migrate.equivalence.capture.session
import amp_migrate.equivalence.reference.modules
import amp_migrate.plan.planner
import amp_migrate.rewrite
import amp_migrate.run  # noqa: F401
from amp_migrate.commands.cli import main as codemod
from amp_migrate.equivalence import reference
from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.capture.standins import cudapolicy
from amp_migrate.equivalence.capture.start import start
from amp_migrate.equivalence.runs import launch as launching
from amp_migrate.equivalence.runs import workspace
from amp_migrate.equivalence.runs.launch import Launch, Progress
from amp_migrate.equivalence.runs.records import Run, read_folder
from amp_migrate.equivalence.runs.runner import Runner

torch.set_num_threads(1)
cudapolicy.on_the_cpu_alone()  # asked once for all trials
REFERENCE = reference.LABEL


def record(source: str, config: CaptureConfig) -> Run:
    """Run `source` as a recorded program and return what was recorded."""
    return record_files({"train.py": source}, "train.py", (), config)


def record_files(
    files: dict[str, str], script: str, arguments: tuple[str, ...], config: CaptureConfig
) -> Run:
    """Run `script` of a project as a recorded program and return what was recorded."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        records = root / "records"
        records.mkdir()
        for name, text in files.items():
            path = root / "project" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        settings = root / "config.json"
        roots = ((str(root / "original"), str(root / "project")),)
        replace(config, record_dir=str(records), roots=roots).write(settings)
        words = script, *arguments
        code = fork_server.ended(_fork(root / "project", words, settings, Path(os.devnull)))
        processes, notes = read_folder(records)
        return Run("trial", processes, notes, code, str(notes.get("error", "")) if code else "")


class ForkedRunner(Runner):
    """Runs both sides of a verification in forked processes; the command is a script and its arguments."""

    record = staticmethod(record_files)

    def _run(self, tree: Path, label: str, config: CaptureConfig) -> Run:
        files = {
            path.relative_to(tree).as_posix(): path.read_text(encoding="utf-8")
            for path in tree.rglob("*")
            if path.is_file()
        }
        script, *arguments = self.options.command[1:]
        return replace(self.record(files, script, tuple(arguments), config), label=label)


@pytest.fixture
def forked_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``python train.py`` of a verification, and the codemod there, be forks of a process that has imported all."""
    monkeypatch.setattr(launching, "_execute", _execute)
    monkeypatch.setattr(workspace, "subprocess", SimpleNamespace(run=_migrated))


def _migrated(command: list[str], **_: object) -> CompletedProcess[str]:
    """Do what `subprocess.run` does for ``python -m amp_migrate``, without a new interpreter."""
    assert command[1:3] == ["-m", "amp_migrate"]
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        code = fork_server.call(_migrate, Path.cwd(), command[3:], out, err)
        said = (path.read_text(encoding="utf-8") for path in (out, err))
        return CompletedProcess(command, code, *said)


def _migrate(root: Path, arguments: list[str], out: Path, err: Path) -> NoReturn:
    """Run the codemod as a fresh interpreter would, and never return."""
    os.chdir(root)
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    code = 1
    try:
        codemod(arguments)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _execute(
    launch: Launch,
    label: str,
    config: CaptureConfig,
    environment: dict[str, str],
    records: Path,
    progress: Progress,
) -> tuple[int, str]:
    """Do what `launch._execute` does for ``python`` or ``torchrun``, without new interpreters."""
    program, *words = (launch.moved(word) for word in launch.command)
    output = records.parent / "output"
    settings = Path(environment["AMP_MIGRATE_VERIFY"])
    paths = environment["PYTHONPATH"].split(os.pathsep)[1:]
    ranks = [dict[str, str]()]
    if program == "torchrun":
        ranks = _ranks(int(words[words.index("--nproc-per-node") + 1]))
        words = words[words.index("train.py") :]
    started = [
        _fork(launch.tree / launch.inside, words, settings, output, paths, rank) for rank in ranks
    ]
    code = max([fork_server.ended(child) for child in started])
    return code, "\n".join(output.read_text(encoding="utf-8").strip().splitlines()[-6:])


def _ranks(count: int) -> list[dict[str, str]]:
    """Return what torchrun tells its processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    ranks = (dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank)) for rank in range(count))
    return [{**meeting, **rank, "WORLD_SIZE": str(count)} for rank in ranks]


def _fork(
    folder: Path,
    words: Sequence[str],
    settings: Path,
    output: Path,
    paths: Sequence[str] = (),
    environment: Mapping[str, str] = {},
) -> int:
    """Start a script with its arguments in a forked process, and return its number."""
    return fork_server.start(_become, folder, words, settings, output, paths, environment)


def _become(
    root: Path,
    words: Sequence[str],
    settings: Path,
    output: Path,
    paths: Sequence[str],
    environment: Mapping[str, str],
) -> NoReturn:
    """Run the program as a fresh interpreter would, and never return."""
    code = 1
    sys.path[:0] = paths
    os.environ.update(environment)
    try:
        atexit._clear()
        sink = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        sys.excepthook = sys.__excepthook__
        os.chdir(root)
        script = words[0]
        sys.argv = [*words]
        sys.path.insert(0, str((root / script).parent))
        sys.dont_write_bytecode = True
        vars(sys.modules["__main__"])["__file__"] = str(root / script)
        start(str(settings))
        try:
            runpy.run_path(script, run_name="__main__")
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            if isinstance(stop.code, str):
                print(stop.code, file=sys.stderr)
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
