"""Signals that end a program: raised like Ctrl-C, so that nothing stays behind, or held back for a moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)
_Handler = Callable[[int, FrameType | None], None]


class Stopped(KeyboardInterrupt):
    """The program was asked to end, by Ctrl-C or by a signal."""


@contextmanager
def raised() -> Iterator[None]:
    """Let the signals that end a program raise `Stopped`, so that every ``finally`` runs."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    with _handled(_ENDING, stop):
        yield


@contextmanager
def held() -> Iterator[Callable[[], None]]:
    """Hold back Ctrl-C and the signals that end a program; yield what raises `Stopped` where one came.

    A signal after the last call of that function comes too late: the work is done.
    """
    came: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        came.append(number)

    def check() -> None:
        if came:
            raise Stopped

    with _handled((signal.SIGINT, *_ENDING), remember):
        yield check


@contextmanager
def _handled(numbers: tuple[signal.Signals, ...], handler: _Handler) -> Iterator[None]:
    """Put a handler in place of the own ones; signals that are ignored stay so, as under nohup."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in numbers}
    mine = [n for n, own in before.items() if own is not None and own != signal.SIG_IGN]
    for number in mine:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, before[number])
