"""New bytes in the place of files: all of them, or none."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from amp_migrate.source.file import UnwritableSource
from amp_migrate.stopping import held
from amp_migrate.words import os_reason


def check_writable(path: str | Path, expected: bytes) -> None:
    """Raise `UnwritableSource` unless a file can be written and has the `expected` bytes still."""
    name = os.fspath(path)
    target = Path(os.path.realpath(name))
    try:
        if not target.stat().st_mode & 0o222 or not os.access(target, os.W_OK):
            raise UnwritableSource(name, "is read-only")
        if not os.access(target.parent, os.W_OK):
            raise UnwritableSource(name, "is in a folder that cannot be written")
        if target.read_bytes() != expected:
            raise UnwritableSource(name, "changed on disk meanwhile; run again")
    except OSError as error:
        raise UnwritableSource(name, os_reason(error)) from error


def write_all(contents: Mapping[str, bytes]) -> None:
    """Put new bytes in the place of files, all of them or none.

    Every new text lies beside its file before the first file changes. Modes stay, symbolic links stay links,
    owners stay where that is allowed. Where anything fails, and on Ctrl-C or a signal, every file has its old
    bytes again. Raises `UnwritableSource`, and `Stopped` for a signal.
    """
    replacements = [Replacement(name, number) for number, name in enumerate(contents)]
    with held() as check:
        try:
            for replacement, data in zip(replacements, contents.values(), strict=True):
                check()
                replacement.prepare(data)
            for replacement in replacements:
                check()
                replacement.swap()
        except BaseException:
            _put_back(replacements)
            raise
        finally:
            for replacement in replacements:
                replacement.clear()


def _put_back(replacements: list[Replacement]) -> None:
    """Give every file its old bytes again, then name the first that could not get them."""
    failures = []
    for replacement in reversed(replacements):
        try:
            replacement.put_back()
        except UnwritableSource as error:
            failures.append(error)
    if failures:
        raise failures[0]


class Replacement:
    """New bytes beside a file, and its old bytes under a second name until all files are written."""

    def __init__(self, name: str, number: int) -> None:
        self._name = name
        self._target = Path(os.path.realpath(name))
        stem = f".amp-migrate-{os.getpid()}-{number}"
        self._new = self._target.with_name(f"{stem}.tmp")
        self._old = self._target.with_name(f"{stem}.old")
        self._swapped = False
        self._keeps_old = False

    def prepare(self, data: bytes) -> None:
        """Write the new bytes to the disk, and give the old ones their second name."""
        self.clear()
        try:
            status = self._target.stat()
            _create(self._new, data)
            _keep_owner(self._new, status)
            self._new.chmod(stat.S_IMODE(status.st_mode))
            self._keep_old(status)
        except OSError as error:
            raise UnwritableSource(self._name, os_reason(error)) from error

    def swap(self) -> None:
        """Let the file have its new bytes."""
        try:
            self._new.replace(self._target)
        except OSError as error:
            raise UnwritableSource(self._name, os_reason(error)) from error
        self._swapped = True

    def put_back(self) -> None:
        """Let the file have its old bytes again; where even that fails, they keep their second name."""
        if not self._swapped:
            return
        try:
            self._old.replace(self._target)
        except OSError as error:
            reason = f"cannot be put back ({os_reason(error)}): its old text is in {self._old}"
            self._keeps_old = True
            raise UnwritableSource(self._name, reason) from error

    def clear(self) -> None:
        """Remove what lies beside the file."""
        for path in (self._new, *([] if self._keeps_old else [self._old])):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _keep_old(self, status: os.stat_result) -> None:
        try:
            self._old.hardlink_to(self._target)
        except OSError:  # not every file system has links
            shutil.copy2(self._target, self._old)
            _keep_owner(self._old, status)


def _create(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _keep_owner(path: Path, status: os.stat_result) -> None:
    """Give a file the owner and group it had, as far as the user may."""
    own = path.stat()
    for user, group in ((status.st_uid, -1), (-1, status.st_gid)):
        if user not in (-1, own.st_uid) or group not in (-1, own.st_gid):
            with suppress(PermissionError):
                os.chown(path, user, group)
