"""A line that says how far the current run is, on a terminal only."""

from __future__ import annotations

import time
from typing import TextIO

_PATIENCE = 1.0
_INTERVAL = 0.2


class Meter:
    """Rewrites one line of `stream`; silent for short runs and where `stream` is no terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._visible = stream.isatty()
        self._label = ""
        self._started = 0.0
        self._shown = 0.0
        self._drawn = False

    def show(self, label: str, done: int, asked: int) -> None:
        """Draw the state of run `label`."""
        now = time.monotonic()
        if label != self._label:
            self._label, self._started = label, now
        if not self._visible or now - self._started < _PATIENCE or now - self._shown < _INTERVAL:
            return
        self._shown = now
        self._drawn = True
        steps = f"step {done}/{asked}" if done else "starting"
        self.stream.write(f"\r\x1b[2K  {label}: {steps}, {now - self._started:.0f} s")
        self.stream.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn:
            self.stream.write("\r\x1b[2K")
            self.stream.flush()
