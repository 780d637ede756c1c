"""A line on a terminal that says what a run is at, once it takes longer than a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

_PATIENCE = 1.0
_INTERVAL = 0.2
_NOTHING = ("", 0)
_phase: tuple[str, int] = _NOTHING


def at(phase: str, files: int) -> None:
    """Say what begins, and with how many files."""
    global _phase
    _phase = phase, files


@contextmanager
def shown(stream: IO[Any]) -> Iterator[None]:
    """Show on `stream` what the work inside is at; nothing where it is no terminal."""
    if not stream.isatty():
        yield
        return
    done = threading.Event()
    painter = threading.Thread(target=_paint, args=(stream, done), daemon=True)
    painter.start()
    try:
        yield
    finally:
        done.set()
        painter.join()
        at(*_NOTHING)


def _paint(stream: IO[Any], done: threading.Event) -> None:
    started = time.monotonic()
    drawn = False
    while not done.wait(_INTERVAL if drawn else _PATIENCE):
        phase, files = _phase
        if phase:
            counted = f", {files} file{'' if files == 1 else 's'}" if files else ""
            seconds = time.monotonic() - started
            stream.write(f"\r\x1b[2K{phase}{counted}, {seconds:.0f} s")
            stream.flush()
            drawn = True
    if drawn:
        stream.write("\r\x1b[2K")
        stream.flush()
