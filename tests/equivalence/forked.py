"""Record a program in a forked process, so that torch is imported once for hundreds of trials."""

from __future__ import annotations

import atexit
import gc
import os
import runpy
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
import torch._dynamo  # imported by the first optimizer; here once for all trials

import amp_migrate.equivalence.capture.session  # what every trial needs, here once
import amp_migrate.equivalence.reference.modules  # noqa: F401
from amp_migrate.equivalence import reference
from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.capture.start import start
from amp_migrate.equivalence.runs.records import Run, read_folder
from amp_migrate.equivalence.runs.runner import Runner

torch.set_num_threads(1)
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
        gc.freeze()  # what a trial does not look at need not be copied for it
        child = os.fork()
        if child == 0:
            _become(root / "project", script, arguments, settings)
        _, status = os.waitpid(child, 0)
        processes, notes = read_folder(records)
        code = os.waitstatus_to_exitcode(status)
        return Run("trial", processes, notes, code, str(notes.get("error", "")) if code else "")


class ForkedRunner(Runner):
    """Runs both sides of a verification in forked processes; the command is a script and its arguments."""

    def _run(self, tree: Path, label: str, config: CaptureConfig) -> Run:
        files = {
            path.relative_to(tree).as_posix(): path.read_text(encoding="utf-8")
            for path in tree.rglob("*")
            if path.is_file()
        }
        script, *arguments = self.options.command[1:]
        return replace(record_files(files, script, tuple(arguments), config), label=label)


def _become(root: Path, script: str, arguments: tuple[str, ...], settings: Path) -> None:
    """Run the program as a fresh interpreter would, and never return."""
    code = 1
    gc.disable()
    try:
        atexit._clear()
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.chdir(root)
        sys.argv = [script, *arguments]
        sys.path.insert(0, str((root / script).parent))
        sys.dont_write_bytecode = True
        vars(sys.modules["__main__"])["__file__"] = str(root / script)
        start(str(settings))
        try:
            runpy.run_path(script, run_name="__main__")
            code = 0
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
        atexit._run_exitfuncs()
    finally:
        os._exit(code)
