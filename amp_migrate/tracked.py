"""Which files of a git repository are tracked although a .gitignore names them: git goes on with those."""

from __future__ import annotations

import os
import subprocess
from functools import cached_property
from pathlib import Path

_COMMAND = ("ls-files", "--cached", "--ignored", "--exclude-standard", "-z")


class Repository:
    """A git repository by its absolute folder; git is asked at most once, and only when that matters."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def tracks(self, path: str) -> bool:
        """Tell whether git tracks a file, or something in a folder, in spite of the ignore rules."""
        return path in self._paths

    @cached_property
    def _paths(self) -> frozenset[str]:
        # A hook runs with GIT_DIR and GIT_INDEX_FILE of the repository that it serves.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        try:
            run = subprocess.run(
                ["git", "-C", self.folder, *_COMMAND],
                capture_output=True,
                check=True,
                env=environment,
            )
        except (OSError, subprocess.CalledProcessError):
            return frozenset()
        names = filter(None, run.stdout.split(b"\0"))
        files = {Path(self.folder, os.fsdecode(name)) for name in names}
        return frozenset(str(path) for file in files for path in (file, *file.parents))
