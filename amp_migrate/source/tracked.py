"""What git knows about a folder: its repository, and the files that it tracks."""

from __future__ import annotations

import os
import subprocess
from functools import cached_property
from pathlib import Path

from amp_migrate.words import os_reason

_ALL = ("--cached",)
_IGNORED = ("--cached", "--ignored", "--exclude-standard")


def repository(path: Path) -> Path | None:
    """Return the folder of the git repository that holds an absolute path; None outside of one."""
    return next((place for place in (path, *path.parents) if (place / ".git").exists()), None)


class GitError(Exception):
    """Git is not there, or does not list its files."""


class Repository:
    """A git repository by its absolute folder; git is asked at most once, and only when that matters."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def tracks(self, path: str) -> bool:
        """Tell whether git tracks a file, or something in a folder, in spite of the ignore rules."""
        return path in self._in_spite

    @cached_property
    def files(self) -> frozenset[str]:
        """The absolute paths of the files that git tracks. Raises `GitError`."""
        return frozenset(map(str, self._listed(_ALL)))

    @cached_property
    def _in_spite(self) -> frozenset[str]:
        try:
            files = self._listed(_IGNORED)
        except GitError:
            return frozenset()
        return frozenset(str(path) for file in files for path in (file, *file.parents))

    def _listed(self, which: tuple[str, ...]) -> set[Path]:
        # A hook runs with GIT_DIR and GIT_INDEX_FILE of the repository that it serves.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        command = ["git", "-C", self.folder, "ls-files", *which, "-z"]
        try:
            run = subprocess.run(command, capture_output=True, check=True, env=environment)
        except OSError as error:
            raise GitError(f"git: {os_reason(error)}") from error
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace").strip().splitlines()
            raise GitError(f"git ls-files: {said[0] if said else error}") from error
        names = filter(None, run.stdout.split(b"\0"))
        return {Path(self.folder, os.fsdecode(name)) for name in names}
