"""Collect what happens between two optimizer steps and write it, one JSON line per iteration."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import torch

from amp_migrate.equivalence.capture.config import CaptureConfig


@dataclass
class Iteration:
    """Everything from the first backward after a step up to the next such backward.

    `events` has a letter per event: B backward, U unscale, C clip, ( scaler.step,
    S step, s skipped step, ^ scaler.update. `losses` and `scales` have one value per backward.
    """

    index: int
    clean: bool
    events: str = ""
    losses: list[float] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    clips: list[dict[str, float]] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    injected: bool = False


class Recorder:
    """The open iteration of this process and the file it is written to.

    The file is made on the first row, so a process that never trains leaves only its header.
    """

    def __init__(self, config: CaptureConfig) -> None:
        self.config = config
        self.notes: dict[str, Any] = {}
        self.before_end: list[Callable[[], None]] = []
        self.iteration: Iteration | None = None
        self.completed = 0
        self.last_backwards = 1
        self._file: TextIO | None = None
        self._ended = False
        # Python forgets the path of the script as soon as it has run.
        self._script = vars(sys.modules["__main__"]).get("__file__")

    def start(self) -> None:
        """Arrange for a proper end however the process ends."""
        atexit.register(self.finish, "exit")
        os.register_at_fork(after_in_child=self._forget)
        previous = sys.excepthook

        def excepthook(kind: type[BaseException], value: BaseException, trace: Any) -> None:
            self.notes["error"] = f"{kind.__name__}: {value}"
            previous(kind, value, trace)

        sys.excepthook = excepthook

    def _forget(self) -> None:
        self._file = None
        self._ended = False
        self.iteration = None
        self.completed = 0

    def open(self, clean: bool) -> Iteration:
        """Return the open iteration; where a step has been attempted, a new one."""
        if self.iteration is not None and not self.iteration.attempts:
            return self.iteration
        self.flush()
        if self.completed >= self.config.steps:
            self.stop()
        self.iteration = Iteration(index=self.completed + 1, clean=clean)
        return self.iteration

    def at_boundary(self) -> bool:
        """Return whether the next backward begins a new iteration."""
        return self.iteration is None or bool(self.iteration.attempts)

    def ahead(self) -> int:
        """Return the index of the iteration that the next backward belongs to."""
        if self.iteration is None:
            return self.completed + 1
        return self.iteration.index + bool(self.iteration.attempts)

    def event(self, letter: str) -> None:
        """Append one letter to the open iteration's events."""
        if self.iteration is not None:
            self.iteration.events += letter

    def flush(self) -> None:
        """Write the open iteration if a step was attempted in it."""
        if self.iteration is None or not self.iteration.attempts:
            return
        self.completed += 1
        self.last_backwards = len(self.iteration.losses)
        self.write({"kind": "iteration", **asdict(self.iteration)})
        self.iteration = None

    def write(self, row: dict[str, Any]) -> None:
        """Append one row to this process's file."""
        if self._file is None:
            path = Path(self.config.record_dir) / f"{os.getpid()}-{time.time_ns()}.jsonl"
            self._file = path.open("w", encoding="utf-8")
            self._file.write(json.dumps(self._header()) + "\n")
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def _header(self) -> dict[str, Any]:
        return {
            "kind": "process",
            "pid": os.getpid(),
            "rank": _rank(),
            "started": time.time(),
            "argv": sys.argv,
            "python": sys.version.split()[0],
            "torch": torch.__version__,
            "device": _device_name(self.config.device),
        }

    def finish(self, how: str) -> None:
        """Write what is open and the end row; later calls do nothing."""
        if self._ended:
            return
        self.flush()
        self._ended = True
        self.notes["files"] = loaded_files(self.config.roots, self._script)
        for callback in self.before_end:
            callback()
        self.write({"kind": "end", "how": how, "notes": self.notes})

    def stop(self) -> None:
        """End the process: the asked number of iterations is recorded.

        No exception is used, because a bare ``except:`` around the step would swallow it.
        """
        self.finish("steps")
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(0)


def loaded_files(roots: tuple[tuple[str, str], ...], script: str | None) -> list[str]:
    """Return the files of the project's copy that were imported or run, relative to it."""
    files = {vars(module).get("__file__") for module in _imported()} | {script}
    found = set()
    for _, copy in roots:
        below = f"{copy}{os.sep}"
        for file in files:
            if isinstance(file, str) and file.startswith(below):
                found.add(Path(file[len(below) :]).as_posix())
    return sorted(found)


def _imported() -> Iterator[ModuleType]:
    """Yield what was imported since recording began; where a process forks off with torch, that is no part of it."""
    first = CaptureConfig.__module__
    names = takewhile(lambda name: name != first, reversed(list(sys.modules)))
    return (module for name in names if (module := sys.modules.get(name)) is not None)


def _rank() -> int:
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return int(os.environ.get("RANK", "0"))


def _device_name(device: str) -> str:
    if device == "cuda" and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return "cpu"
