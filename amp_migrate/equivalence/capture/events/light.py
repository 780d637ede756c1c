"""Step time, samples, waiting for data and peak memory, with nothing else measured."""

from __future__ import annotations

import resource
import sys
import time
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from amp_migrate.equivalence.capture.events.loading import Loading
from amp_migrate.equivalence.capture.patching import wrap
from amp_migrate.equivalence.capture.recorder import Recorder


class Light:
    """Seconds between the first backwards of consecutive iterations, and peak bytes.

    A skipped step does not end an iteration here, so overflow must not be injected.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.seconds: list[float] = []
        self.loaded: list[tuple[int, float]] = []
        self._loading = Loading(recorder.notes)
        self._stepped = True
        self._last: float | None = None
        self._count = 0

    def install(self) -> None:
        """Start measuring."""
        register_optimizer_step_post_hook(self._step)
        self._loading.install()
        self.recorder.before_end.append(self._write)

        def make(original: Any) -> Any:
            def backward(*args: Any, **kwargs: Any) -> None:
                if self._stepped:
                    self._stepped = False
                    self._tick()
                original(*args, **kwargs)

            return backward

        wrap(torch.autograd, "backward", make)

    def _step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._stepped = True

    def _tick(self) -> None:
        steps = self.recorder.config.steps
        if torch.cuda.is_available() and self.recorder.config.device == "cuda":
            torch.cuda.synchronize()
            if self._count == warm_up(steps):
                torch.cuda.reset_peak_memory_stats()
        now = time.perf_counter()
        loaded = self._loading.taken()
        if self._last is not None:
            self.seconds.append(now - self._last)
            self.loaded.append(loaded)
        self._last = now
        self._count += 1
        if self._count > steps:
            self.recorder.stop()

    def _write(self) -> None:
        if not self.seconds:
            return
        first = warm_up(self.recorder.config.steps)
        first = first if len(self.seconds) > first else 0
        self.recorder.write(
            {
                "kind": "timing",
                "seconds": self.seconds[first:],
                "samples": [number for number, _ in self.loaded[first:]],
                "waited": [seconds for _, seconds in self.loaded[first:]],
                "peak_bytes": _peak_bytes(self.recorder),
            }
        )


def warm_up(steps: int) -> int:
    """Return how many first iterations are left out: lazy allocations, kernel selection."""
    return max(2, steps // 4)


def _peak_bytes(recorder: Recorder) -> int:
    if recorder.config.device == "cuda" and torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
