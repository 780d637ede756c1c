"""Work on many things at once, in processes that begin with all that was worked out so far; and without collector."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_RUNS = 8
_SHARE = 20
_MUCH = 6_000_000  # objects, about a gigabyte
_MOST = 2 * _MUCH

_work: tuple[Callable[[Any], Any], Sequence[Any]] | None = None


def each(function: Callable[[T], R], items: Sequence[T], jobs: int) -> list[R]:
    """Return what a function gives for every item, in their order, from up to `jobs` processes, 0 for one per core.

    The function may hold anything, as processes are forked; what it gives is pickled. One process does it all where
    the system has no fork, and where there is nothing to share out. What raises there raises here.
    """
    global _work
    count = min(jobs or os.cpu_count() or 1, len(items))
    if count < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return [function(item) for item in items]
    outer, _work = _work, (function, items)
    try:
        with multiprocessing.get_context("fork").Pool(count, _deaf) as pool:
            return pool.map(_run, range(len(items)), chunksize=1)
    finally:
        _work = outer


def _deaf() -> None:
    """Leave Ctrl-C to the process that began, which ends this one, and let a signal end it at once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(place: int) -> Any:
    assert _work is not None
    function, items = _work
    return function(items[place])


@dataclass
class _Garbage:
    """What runs in one process have left behind them, and how long the last look through it took."""

    runs: int = 0
    seconds: float = 0.0
    look: float = 0.0

    def left(self, seconds: float) -> None:
        """Note a run of some seconds."""
        self.runs += 1
        self.seconds += seconds

    def collect(self) -> None:
        """Free it where there were enough runs for that to take a twentieth of their time at most."""
        if self.runs < _RUNS or self.seconds < _SHARE * self.look:
            return
        begun = time.perf_counter()
        gc.collect()
        self.runs, self.seconds, self.look = 0, 0.0, time.perf_counter() - begun


_garbage = _Garbage()


def tidy() -> None:
    """Free what a finished piece of work left, where that is much and nothing else looks for it; what stays is looked at once."""
    if not gc.isenabled() and gc.get_count()[0] > _MOST:
        gc.collect()
        gc.freeze()


def release() -> None:
    """Free what went with a group of files, where that is much and nothing else looks for it."""
    if not gc.isenabled() and gc.get_count()[0] + gc.get_freeze_count() > _MUCH:
        gc.unfreeze()
        gc.collect()


@contextmanager
def without_collector() -> Iterator[None]:
    """Look for no garbage while there is none: syntax trees live to the end, and going through them takes long.

    What was made meanwhile counts as old afterwards, or the next look for garbage among what is new would go through
    all. Many runs in one process collect what those before left.
    """
    running = gc.isenabled()
    if running:
        _garbage.collect()
    gc.disable()
    frozen = gc.get_freeze_count() if running else 0  # it counts one by one
    begun = time.perf_counter()
    try:
        yield
    finally:
        if running:
            _garbage.left(time.perf_counter() - begun)
            if not frozen:
                gc.freeze()
                gc.unfreeze()
            gc.enable()
