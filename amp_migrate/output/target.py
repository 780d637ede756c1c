"""The file that --output-file names."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class OutputFile:
    """A file that is opened before anything else is done, and emptied only for what is written to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._new = not path.exists()
        self._number = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)

    def write(self, content: bytes) -> None:
        """Put `content` in place of what the file held."""
        self._new = False
        with suppress(OSError):  # a pipe or a device has no length
            os.ftruncate(self._number, 0)
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._number, rest) :]

    def close(self) -> None:
        """Close the file; one that nothing was written to, and that was not there before, goes."""
        os.close(self._number)
        if self._new:
            with suppress(OSError):
                self._path.unlink()
