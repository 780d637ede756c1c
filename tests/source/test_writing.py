"""Writes are whole: new bytes in all files, or the old ones in all of them, and nothing beside them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shell_support import APEX_PROGRAM, FakeEngine, Put, amp_migrate

from amp_migrate.source import writing
from amp_migrate.source.file import UnwritableSource
from amp_migrate.source.writing import check_writable, write_all

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("a.py", "b.py", "c.py")
pytestmark = pytest.mark.usefixtures("heard")


def write(file: Path, data: bytes) -> None:
    write_all({str(file): data})


class TestOneFile:
    def test_keeps_the_mode_and_leaves_no_other_file(self, tmp_path: Path) -> None:
        file = tmp_path / "a.py"
        file.write_bytes(b"old")
        file.chmod(0o755)

        write(file, b"new")

        assert file.read_bytes() == b"new"
        assert file.stat().st_mode & 0o777 == 0o755
        assert os.listdir(tmp_path) == ["a.py"]

    def test_link_stays_a_link_and_its_target_changes(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        target, link = tmp_path / "real" / "a.py", tmp_path / "link.py"
        target.write_bytes(b"old")
        link.symlink_to(target)

        write(link, b"new")

        assert link.is_symlink()
        assert target.read_bytes() == b"new"

    def test_read_only_file_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "a.py"
        file.write_bytes(b"old")
        file.chmod(0o444)

        with pytest.raises(UnwritableSource, match="read-only"):
            check_writable(file, expected=b"old")

        assert file.read_bytes() == b"old"

    def test_file_that_changed_meanwhile_is_left(self, tmp_path: Path) -> None:
        file = tmp_path / "a.py"
        file.write_bytes(b"edited by hand")

        with pytest.raises(UnwritableSource, match="changed on disk"):
            check_writable(file, expected=b"old")

        assert file.read_bytes() == b"edited by hand"

    def test_owner_that_may_not_be_kept_is_no_obstacle(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A user of the group may write a file, but not give one away."""
        file = tmp_path / "a.py"
        file.write_bytes(b"old")
        status = os.stat_result((0o100664, 1, 1, 1, os.getuid() + 1, os.getgid() + 1, 3, 0, 0, 0))
        asked: list[tuple[int, int]] = []

        def chown(path: object, user: int, group: int) -> None:
            asked.append((user, group))
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "chown", chown)
        writing._keep_owner(file, status)

        assert asked == [(os.getuid() + 1, -1), (-1, os.getgid() + 1)]

    def test_file_system_without_links_is_written_as_well(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        files = three(tmp_path)
        monkeypatch.setattr(Path, "hardlink_to", failing(at=1))
        monkeypatch.setattr(Path, "replace", failing(at=3, original=Path.replace))

        with pytest.raises(UnwritableSource):
            write_all(dict.fromkeys(files, b"new"))

        assert_as_before(tmp_path, files)


def three(folder: Path) -> list[str]:
    for name in NAMES:
        (folder / name).write_text(f"old {name}")
    return [str(folder / name) for name in NAMES]


def assert_as_before(folder: Path, files: list[str]) -> None:
    assert [Path(file).read_text() for file in files] == [f"old {name}" for name in NAMES]
    assert sorted(os.listdir(folder)) == list(NAMES)


def failing(
    at: int, error: BaseException | None = None, original: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Return a function that fails at its n-th call, and at every later one where there is no original."""
    calls = 0

    def fail(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at or (original is None and calls > at):
            raise error or OSError(28, "No space left on device")
        return original(*args, **kwargs) if original is not None else None

    return fail


class TestSeveralFiles:
    @pytest.mark.parametrize("at", [1, 2, 3])
    @pytest.mark.parametrize("error", [OSError(28, "No space left"), KeyboardInterrupt()])
    @pytest.mark.parametrize(("owner", "name"), [(os, "fsync"), (Path, "replace"), (os, "open")])
    def test_any_failure_leaves_every_file_as_it_was(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        at: int,
        error: BaseException,
        owner: Any,
        name: str,
    ) -> None:
        files = three(tmp_path)
        kept = [Path(file).stat().st_ino for file in files]
        monkeypatch.setattr(owner, name, failing(at, error, getattr(owner, name)))

        with pytest.raises((UnwritableSource, KeyboardInterrupt)):
            write_all(dict.fromkeys(files, b"new"))

        assert_as_before(tmp_path, files)
        assert [Path(file).stat().st_ino for file in files] == kept

    def test_file_that_cannot_be_put_back_names_its_old_text(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        files = three(tmp_path)
        replace, calls = Path.replace, 0

        def once(path: Path, target: Path) -> Path:
            nonlocal calls
            calls += 1
            if calls > 1:
                raise OSError(30, "Read-only file system")
            return replace(path, target)

        monkeypatch.setattr(Path, "replace", once)
        with pytest.raises(UnwritableSource, match=r"a\.py: cannot be put back .*old text is in"):
            write_all(dict.fromkeys(files, b"new"))

        beside = [name for name in os.listdir(tmp_path) if name.endswith(".old")]
        assert [(tmp_path / name).read_text() for name in beside] == ["old a.py"]

    def test_run_says_it_in_one_line(
        self, put: Put, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in NAMES:
            put(name, "old()\n")
        monkeypatch.setattr(Path, "replace", failing(2, original=Path.replace))

        done = amp_migrate(".")

        assert done.stderr == "Error: b.py: no space left on device; nothing was written\n"
        assert done.exit_code == 2
        assert [Path(name).read_text() for name in NAMES] == ["import apex\nold()\n"] * 3

    def test_ctrl_c_between_two_files_leaves_them_as_they_were(
        self, put: Put, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The signal itself: it comes while the first file is renamed."""
        for name in NAMES:
            put(name, "old()\n")
        monkeypatch.setattr(Path, "replace", then_signal(signal.SIGINT, Path.replace))

        done = amp_migrate(".")

        assert done.stderr == "Error: stopped; nothing was written\n"
        assert done.exit_code == 2
        assert [Path(name).read_text() for name in NAMES] == ["import apex\nold()\n"] * 3


def then_signal(number: int, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        result = original(*args)
        os.kill(os.getpid(), number)
        return result

    return call


INTERRUPTED = """
import os, signal, sys
from pathlib import Path
from amp_migrate.commands.cli import main
original = getattr({owner}, {name!r})
def then(*args, **kwargs):
    result = original(*args, **kwargs)
    os.kill(os.getpid(), {number})
    return result
setattr({owner}, {name!r}, then)
main(["."], prog_name="amp-migrate")
"""


class TestProcess:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    @pytest.mark.parametrize(("owner", "name"), [("os", "fsync"), ("Path", "replace")])
    def test_signal_leaves_nothing_half_and_nothing_beside(
        self, folder: Path, number: signal.Signals, owner: str, name: str
    ) -> None:
        (folder / "a.py").write_text(APEX_PROGRAM)
        (folder / "b.py").write_text(APEX_PROGRAM)
        script = INTERRUPTED.format(owner=owner, name=name, number=int(number))

        done = run(["-c", script])

        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "Error: stopped; nothing was written\n"
        assert sorted(os.listdir(folder)) == ["a.py", "b.py"]
        assert {(folder / name).read_text() for name in ("a.py", "b.py")} == {APEX_PROGRAM}

    def test_full_disk_leaves_nothing_half_and_nothing_beside(self, folder: Path) -> None:
        """Files may have 600 bytes: the short program fits, the long one does not."""
        (folder / "a.py").write_text(APEX_PROGRAM)
        (folder / "b.py").write_text(APEX_PROGRAM + "# a long comment\n" * 100)
        before = (folder / "b.py").read_text()
        limited = (
            "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600)); "
            "import sys; sys.argv = ['amp-migrate', '.']; runpy.run_module('amp_migrate', run_name='__main__')"
        )

        done = run(["-B", "-c", limited])

        assert done.stderr == "Error: b.py: file too large; nothing was written\n"
        assert done.returncode == 2
        assert sorted(os.listdir(folder)) == ["a.py", "b.py"]
        assert (folder / "a.py").read_text() == APEX_PROGRAM
        assert (folder / "b.py").read_text() == before


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
