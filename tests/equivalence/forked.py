"""Record a program in a forked process, so that torch is imported once for hundreds of trials."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
import torch._dynamo  # imported by the first optimizer; here once for all trials

from amp_migrate.equivalence import reference
from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.capture.start import start
from amp_migrate.equivalence.records import Run, read_folder

torch.set_num_threads(1)
REFERENCE = reference.LABEL


def record(source: str, config: CaptureConfig) -> Run:
    """Run `source` as a recorded program and return what was recorded."""
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records"
        records.mkdir()
        script = Path(folder) / "train.py"
        script.write_text(source, encoding="utf-8")
        replace(config, record_dir=str(records)).write(Path(folder) / "config.json")
        child = os.fork()
        if child == 0:
            _become(
                folder, lambda: exec(compile(source, str(script), "exec"), {"__name__": "__main__"})
            )
        _, status = os.waitpid(child, 0)
        processes, notes = read_folder(records)
        code = os.waitstatus_to_exitcode(status)
        return Run("trial", processes, notes, code, str(notes.get("error", "")) if code else "")


def _become(folder: str, program: Callable[[], None]) -> None:
    """Run `program` as a fresh interpreter would, and never return."""
    code = 1
    try:
        atexit._clear()
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.chdir(folder)
        sys.argv = ["train.py"]
        start(str(Path(folder) / "config.json"))
        try:
            program()
            code = 0
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
        atexit._run_exitfuncs()
    finally:
        os._exit(code)
